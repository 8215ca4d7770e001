"""One trace: its page, its recording and its case as files."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import text_of
from collector.api.feedback_table import said_by_people
from collector.api.page.feedback_pages import said_view
from collector.api.page.session_pages import TRACES
from collector.api.page.sheet import OPENING, PAGE, Sheet, plain
from collector.api.page.signal_rows import failing, runs_away, signal_rows, why_no_scores
from collector.api.page.site import Pages
from collector.api.traces import FullTrace
from collector.base.frames import LENGTH
from collector.config.strict_yaml import in_yaml
from evaluators.dialects.reading_order import Line, read_exchanged, reading_order
from evaluators.expectations import case_of
from evaluators.matching.first_failure import first_failure
from evaluators.model import ModelCall, ToolCall, Trace

# A trace as a conversation: each line with its texts, what it took, and where the trace went wrong first. Pure.

_OPENINGS = {"system": 200}
"""Characters of what somebody said that are seen at once: the same instructions begin every trace of an agent."""
LINES = 400  # lines that the page shows; the API has the rest


def talk(trace: Trace, lines: Sequence[Line], sheet: Sheet) -> list[dict[str, Any]]:
    """The lines in groups: what was said in former turns is together, to be folded."""
    maker = _Maker(trace, sheet)
    rows = sheet.rows(lines, maker.row, cost=700, most=LINES)
    return [
        {"is_earlier": is_earlier, "rows": list(group)}
        for is_earlier, group in groupby(rows, key=lambda row: row["is_earlier"])
    ]


class _Maker:
    def __init__(self, trace: Trace, sheet: Sheet) -> None:
        self._sheet = sheet
        self._began = trace.start_time_unix_nano
        self._has_agents = len(trace.agents) > 1
        failure = first_failure(trace)
        self._failed = None if failure is None else failure.call
        self._led_to = None if failure is None else failure.span_id
        self._made: Counter[str] = Counter()
        self._number = 0

    def row(self, line: Line) -> dict[str, Any]:
        self._number += 1
        timed = line.call or line.model
        return {
            "id": f"line-{self._number}",
            "speaker": line.speaker,
            "agent": line.agent and self._sheet.name(line.agent),
            "is_earlier": line.is_earlier,
            "span_id": line.span_id,
            "text": self._sheet.long(
                (line.text or "").strip(), opening=_OPENINGS.get(line.speaker, OPENING)
            ),
            "wanted": [
                {"name": self._sheet.name(each.name), "arguments": self._sheet.text(each.arguments)}
                for each in line.wanted
            ],
            "asks": line.asks,
            "at": None if timed is None else _seconds(self._began, timed.start_time_unix_nano),
            "seconds": None
            if timed is None
            else _seconds(timed.start_time_unix_nano, timed.end_time_unix_nano),
            **self._of_model(line.model),
            **self._of_call(line.call),
        }

    def _of_model(self, call: ModelCall | None) -> dict[str, Any]:
        if call is None:
            return {"model": None, "led_to_failure": False}
        name = self._sheet.name
        return {
            "model": {
                "name": call.model and name(call.model),
                "agent": self._agent(call),
                "error": self._sheet.text(call.error),
                "input": call.tokens.input,
                "output": call.tokens.output,
            },
            "led_to_failure": self._led_to is not None and call.span_id == self._led_to,
        }

    def _agent(self, call: ModelCall | ToolCall) -> str | None:
        return self._sheet.name(call.agent) if call.agent and self._has_agents else None

    def _of_call(self, call: ToolCall | None) -> dict[str, Any]:
        if call is None:
            return {"call": None, "is_first_failure": False}
        same = f"{call.name} {plain(call.arguments)}"
        self._made[same] += 1
        return {
            "call": {
                "name": self._sheet.name(call.name),
                "agent": self._agent(call),
                "arguments": self._sheet.long(call.arguments),
                "result": self._sheet.long(None if call.error else call.result),
                "error": self._sheet.long(call.error),
                "rejected": call.rejected,
                "times": self._made[same],
            },
            "is_first_failure": call is self._failed,
        }


def _seconds(since: int, until: int) -> float:
    return max(0, until - since) / 1e9


# The spans of a trace as a tree on a time axis. Pure.

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
        "events_left_out": len(span["events"]) - len(events),
        "scope": tree.name(span["scope"]),
    }


SPANS = 400  # spans that the tree shows; the API has the rest
GAPS = 20
MAX_READ = 16 << 20
"""Bytes of raw spans whose messages are read for a page; of larger traces the answers and tool calls are shown."""


def trace_view(full: FullTrace) -> dict[str, Any]:
    header, whole = full.shown.entry.header, full.trace
    address = f"/api/v1/traces/{header.trace_id}"
    head, spoken, tree, said = (Sheet(address, PAGE * part // 16) for part in (2, 4, 4, 6))
    rows = span_rows(full.spans)
    spans = tree.rows(rows, lambda row: span_shown(row, tree, said), cost=700, most=SPANS)
    numbered = {span["id"]: (span["row"].number, span["name"]) for span in spans}
    signals = signal_rows(full.shown.signals, head, spans=numbered)
    why = why_no_scores(signals)
    # Without messages where they are too many to read, or the spans are gone or not to be shown.
    pieces = full.pieces if sum(map(len, full.pieces)) <= MAX_READ else ()
    lines = reading_order(full.whole, read_exchanged(pieces, trace_id=full.whole.trace_id))
    groups = talk(full.whole, lines, spoken)
    return {
        "header": header,
        "before": full.shown.before,
        "after": full.shown.after,
        "is_old": full.shown.later >= TRACES,
        "whole": address,
        "error": head.text(whole["error"]),
        **{key: head.long(whole[key]) for key in ("input", "output")},
        "models": head.text(", ".join(whole["models"])),
        "tokens": whole["tokens"],
        "cost": whole["cost_usd"],
        "gaps": [head.name(gap) for gap in whole["gaps"][:GAPS]],
        "seconds": max(0, header.end_time_unix_nano - header.start_time_unix_nano) / 1e9,
        "signals": signals,
        "failing": failing(signals),
        "said": said_view(full.shown.feedback, head),
        "outcome": said_by_people(full.shown.feedback),
        "forwarded": full.shown.forwarded,
        "unscored": why and head.name(why),
        "runs_away": runs_away(signals),
        "is_open": full.shown.entry.row.offset is None,
        "talk": groups,
        "lines_left_out": len(lines) - sum(len(group["rows"]) for group in groups),
        "rows": spans,
        "shown_spans": {span_id: number for span_id, (number, _) in numbered.items()},
        "left_out": len(rows) - len(spans),
        "expired": not full.spans,
        "has_recording": bool(full.pieces),
    }


CORRECTION = "correction"  # of feedback whose comment is the answer that a person expected
_HEAD = """\
# What the agent did in trace {trace_id}, as a case for the file under `expectations`.
# Correct what should have been otherwise: the output, the tools in their order, their arguments.
"""


def recording(full: FullTrace) -> bytes:
    return b"".join(LENGTH.pack(len(each)) + each for each in full.pieces)


def case(full: FullTrace) -> str:
    corrected = next(
        (
            each.comment
            for each in full.shown.feedback
            if each.name == CORRECTION and each.kind == "human" and each.comment
        ),
        None,
    )
    entry = case_of(full.whole, corrected=corrected)
    return _HEAD.format(trace_id=full.whole.trace_id) + in_yaml([entry])


class TracePages(Pages):
    """Files hold raw spans or texts of messages: there are none where no content is to be shown."""

    def routes(self) -> list[Route]:
        return [
            Route("/trace", self.trace),
            Route("/trace/recording", self.recording),
            Route("/trace/case", self.case),
        ]

    async def trace(self, request: Request) -> Response:
        return await self._found(request, self._page)

    async def recording(self, request: Request) -> Response:
        return await self._found(request, self._recording)

    async def case(self, request: Request) -> Response:
        return await self._found(request, self._case)

    async def _found(self, request: Request, then: Callable[[FullTrace], Response]) -> Response:
        trace_id = text_of(request, "id")
        if trace_id is None:
            return self.site.rendering.missing("trace")
        trace_id = trace_id.lower()
        found = await self.site.traces.find(trace_id, then)
        return self.site.rendering.missing("trace", trace_id) if found is None else found

    def _page(self, found: FullTrace) -> Response:
        link = self.site.config.links.trace
        link = link and link.replace("{trace_id}", quote(_id(found)))
        return self.site.rendering.page("trace.html", view=trace_view(found), link=link)

    def _recording(self, found: FullTrace) -> Response:
        if not found.pieces:
            return self.site.rendering.missing("recording", _id(found))
        name = f"trace-{_id(found)}.otlp"
        return self.site.rendering.file(
            recording(found), name=name, media_type="application/octet-stream"
        )

    def _case(self, found: FullTrace) -> Response:
        if not found.pieces:
            return self.site.rendering.missing("recording", _id(found))
        name = f"case-{_id(found)}.yaml"
        return self.site.rendering.file(case(found), name=name, media_type="application/yaml")


def _id(found: FullTrace) -> str:
    return found.whole.trace_id
