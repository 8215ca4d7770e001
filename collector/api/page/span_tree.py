"""The spans of a trace as a tree on a time axis. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from collector.api.page.sheet import Sheet, left_out

WIDTH = 1000.0  # of the time axis, in the units of its drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    span: dict[str, Any]
    number: int  # its place in the tree, from 1: what the page calls it
    depth: int
    left: float
    width: float
    seconds: float

    @property
    def indent(self) -> int:
        return min(self.depth, 12)


def span_rows(spans: Sequence[dict[str, Any]]) -> list[SpanRow]:
    if not spans:
        return []
    starts = [int(span["startTimeUnixNano"]) for span in spans]
    ends = [int(span["endTimeUnixNano"]) for span in spans]
    first, length = min(starts), max(1, max(ends) - min(starts))
    rows: list[SpanRow] = []
    for number, (span, depth) in enumerate(_in_tree_order(spans), 1):
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        left = (start - first) / length * WIDTH
        rows.append(
            SpanRow(
                span=span,
                number=number,
                depth=depth,
                left=round(min(left, WIDTH - 4), 2),
                width=round(max(4.0, min(WIDTH - left, (end - start) / length * WIDTH)), 2),
                seconds=max(0, end - start) / 1e9,
            )
        )
    return rows


def _in_tree_order(spans: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Depth first. A span whose parent is missing is a root; spans that go round in circles come last."""
    known = {span["spanId"] for span in spans}
    children: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        parent = span["parentSpanId"]
        children.setdefault(parent if parent in known else "", []).append(span)
    ordered: list[tuple[dict[str, Any], int]] = []
    waiting = [(span, 0) for span in reversed(children.pop("", []))]
    while waiting:
        span, depth = waiting.pop()
        ordered.append((span, depth))
        below = reversed(children.pop(span["spanId"], []))
        waiting += [(child, depth + 1) for child in below]
    seen = {span["spanId"] for span, _ in ordered}
    return ordered + [(span, 0) for span in spans if span["spanId"] not in seen]


def span_shown(row: SpanRow, tree: Sheet, said: Sheet) -> dict[str, Any]:
    """A row of the tree with its texts, which have room of their own: attributes and events without it are counted."""
    span = row.span
    attributes = said.rows(
        span["attributes"].items(),
        lambda each: (said.name(each[0]), said.text(each[1])),
        cost=30,
    )
    events = said.rows(
        span["events"],
        lambda event: f"{said.name(event['name'])} {said.text(event['attributes'])}",
        cost=40,
    )
    return {
        "row": row,
        "id": tree.name(span["spanId"]),
        "name": tree.name(span["name"]),
        "failed": span["status"]["code"] == "error",
        "message": said.text(span["status"]["message"]),
        "attributes": attributes,
        "attributes_left_out": len(span["attributes"]) - len(attributes),
        "events": events,
        "events_left_out": left_out(span["events"], events),
        "scope": tree.name(span["scope"]),
    }
