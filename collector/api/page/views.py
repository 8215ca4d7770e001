"""What the templates show, made ready: pure, from what the index and the log gave; and how numbers and times read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import msgspec

from collector.api.page.sheet import PAGE, Sheet, left_out, name
from collector.api.query import SessionShown, TraceShown, session_shown
from collector.api.traces import FullTrace
from collector.config.tree import Config
from collector.runtime.net import is_loopback

SPANS = 400
"""Spans that the tree shows; the API has the rest."""
TRACES = 200
"""Traces of a session that the page shows: the newest."""
WIDTH = 1000.0
"""Of the time axis, in the units of its drawing."""
NOTHING = "\u2013"
OTHERS = 20
"""Services with a session of the same id that the page names."""
CALLS = 400
"""Tool calls that the page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    """One line of the span tree."""

    span: dict[str, Any]
    depth: int
    left: float
    width: float
    seconds: float

    @property
    def indent(self) -> int:
        """Levels that the layout can show."""
        return min(self.depth, 12)


def first_command(config: Config) -> str:
    """The command that sends something here."""
    host = config.receiver.grpc.host
    name = host if is_loopback(host) else "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    scheme = "http" if config.receiver.tls is None else "https"
    return (
        f"OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://{name}:{config.receiver.grpc.port} "
        "python my_agent.py"
    )


def session(shown: SessionShown, others: Sequence[str] = ()) -> dict[str, Any]:
    """A session with its newest traces, and `others`, the services that have one of the same id."""
    whole = session_shown(shown)
    turns = cast(list[dict[str, Any]], whole["traces"])
    numbered = list(zip(range(1, len(turns) + 1), turns, shown.traces, strict=True))
    head = Sheet(f"/api/v1/sessions/{name(whole['session_id'])}", PAGE // 4)
    body = Sheet(head.whole, PAGE - PAGE // 4)
    newest = body.rows(reversed(numbered), lambda row: _turn(body, *row), cost=1_000, most=TRACES)
    return {
        **whole,
        "unscored": shown.entry.unscored if shown.entry.reliability is None else None,
        "signals": _signals(shown.signals, head),
        "others": others[:OTHERS],
        "more_others": len(others[OTHERS:]),
        "left_out": left_out(turns, newest),
        "traces": newest[::-1],
    }


def _turn(sheet: Sheet, number: int, turn: dict[str, Any], trace: TraceShown) -> dict[str, Any]:
    whole = _address(turn["trace_id"])
    signals = _signals(trace.signals, sheet, whole)
    why = _why_no_scores(signals)
    return {
        **turn,
        **{key: sheet.text(turn[key], whole) for key in ("input", "output", "error")},
        "number": number,
        "signals": signals,
        "runs_away": runs_away(signals),
        "unscored": why and sheet.name(why),
    }


def runs_away(signals: Sequence[dict[str, Any]]) -> bool:
    """Whether the trace was found to run away, and has not closed since."""
    return any(
        each["evaluator"] == "runaway" and not each["final"] and each["success"] is False
        for each in signals
    )


def _why_no_scores(signals: Sequence[dict[str, Any]]) -> str | None:
    """What most of a trace's signals say when none of them is a score or a failure."""
    if any(each["outcome"] in {"scored", "failed"} for each in signals):
        return None
    told = Counter(each["because"] for each in signals if each["reason"] is not None)
    return told.most_common(1)[0][0] if told else None


def trace(full: FullTrace) -> dict[str, Any]:
    """A trace with its span tree."""
    header, whole = full.shown.entry.header, full.trace
    address = _address(header.trace_id)
    head, calls, tree, said = (Sheet(address, PAGE * part // 16) for part in (2, 3, 5, 6))
    rows = span_rows(full.spans)
    spans = tree.rows(rows, lambda row: _span(row, tree, said), cost=700, most=SPANS)
    tool_calls = calls.rows(
        whole["tool_calls"], lambda call: _call(call, calls), cost=200, most=CALLS
    )
    steps = calls.rows(
        whole["steps"],
        lambda step: {key: calls.text(step[key]) for key in ("agent", "output")},
        cost=100,
        most=CALLS,
    )
    signals = _signals(full.shown.signals, head)
    return {
        "header": header,
        "whole": address,
        **{key: head.text(whole[key]) for key in ("error", "input", "output")},
        "models": head.text(", ".join(whole["models"])),
        "gaps": [head.name(gap) for gap in whole["gaps"][:CALLS]],
        "seconds": max(0, header.end_time_unix_nano - header.start_time_unix_nano) / 1e9,
        "signals": signals,
        "runs_away": runs_away(signals),
        "is_open": full.shown.entry.row.offset is None,
        "steps": steps,
        "steps_left_out": left_out(whole["steps"], steps),
        "tool_calls": tool_calls,
        "calls_left_out": left_out(whole["tool_calls"], tool_calls),
        "rows": spans,
        "left_out": left_out(rows, spans),
        "expired": not full.spans,
    }


def _address(trace_id: str) -> str:
    return f"/api/v1/traces/{trace_id}"


def _call(call: dict[str, Any], sheet: Sheet) -> dict[str, str]:
    return {
        "name": sheet.name(call["name"]),
        **{key: sheet.text(call[key]) for key in ("arguments", "error", "result")},
    }


def _span(row: SpanRow, tree: Sheet, said: Sheet) -> dict[str, Any]:
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


def span_rows(spans: Sequence[dict[str, Any]]) -> list[SpanRow]:
    """The spans as a tree, parents before children, each where it stands on the time axis."""
    if not spans:
        return []
    starts = [int(span["startTimeUnixNano"]) for span in spans]
    ends = [int(span["endTimeUnixNano"]) for span in spans]
    first, length = min(starts), max(1, max(ends) - min(starts))
    rows: list[SpanRow] = []
    for span, depth in _in_tree_order(spans):
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        left = (start - first) / length * WIDTH
        rows.append(
            SpanRow(
                span=span,
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


def _signals(
    raw: Sequence[msgspec.Raw], sheet: Sheet, whole: str | None = None
) -> list[dict[str, Any]]:
    """Decoded; a stand-in whose verdict has come is left out, the worst score comes first."""
    signals = [cast(dict[str, Any], msgspec.json.decode(signal)) for signal in raw]
    final = {signal["evaluator"] for signal in signals if signal["final"]}
    shown = [s for s in signals if s["final"] or s["evaluator"] not in final]

    def row(signal: dict[str, Any]) -> dict[str, Any]:
        evaluator = sheet.name(signal["evaluator"])
        return {**signal, "evaluator": evaluator, "because": sheet.text(_because(signal), whole)}

    return sheet.rows(sorted(shown, key=_worst_first), row, cost=700)


def _because(signal: dict[str, Any]) -> Any:
    """What explains the signal: its error, its explanation, its reason, or what was measured."""
    if signal["error"]:
        kind, message = words(signal["error"]["type"]), signal["error"]["message"]
        return f"{kind}: {message}" if message else kind
    if signal["explanation"]:
        return signal["explanation"]
    if signal["reason"]:
        return words(signal["reason"])
    return signal["metadata"] if signal["outcome"] == "measured" else None


def _worst_first(signal: dict[str, Any]) -> tuple[int, float, str]:
    order = {"scored": 0, "failed": 1, "measured": 2, "skipped": 3, "not_applicable": 4}
    value = signal["score"] if signal["score"] is not None else 0.0
    return order.get(signal["outcome"], 5), value, signal["evaluator"]


def score(value: float | None) -> str:
    """Two decimals, never rounded up to a perfect 1.00; a dash for unknown."""
    if value is None:
        return NOTHING
    text = f"{value:.2f}"
    return "0.99" if text == "1.00" and value < 1 else text


def grade(value: float | None) -> str:
    """The colour of a score: good from 0.8, fair from 0.5, poor below."""
    if value is None:
        return "unknown"
    if value >= 0.8:
        return "good"
    return "fair" if value >= 0.5 else "poor"


def standing(value: float, success: bool | None) -> str:
    """The colour of an outcome: whether it passed decides, and what neither passes nor fails has none."""
    if success is None:
        return "unknown"
    if not success:
        return "poor"
    return "good" if value >= 0.8 else "fair"


def duration(seconds: float) -> str:
    """`340 ms`, `4.2 s`, `3 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(text: str | None) -> str:
    """`2026-02-03 14:05:09`, UTC."""
    return NOTHING if text is None else text[:19].replace("T", " ")


def words(name: str) -> str:
    """`tool_correctness` as people say it."""
    return name.replace("_", " ")


def capitalised(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]


def escaped(value: Any) -> str:
    """A value inside a query string."""
    return quote(str(value), safe="")


FILTERS: dict[str, Callable[..., str]] = {
    "score": score,
    "grade": grade,
    "standing": standing,
    "duration": duration,
    "moment": moment,
    "words": words,
    "capitalised": capitalised,
    "name": name,
    "q": escaped,
}
