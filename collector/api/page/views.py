"""What the templates show, made ready: pure, from what the index and the log gave; and how numbers and times read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import msgspec

from collector.api.query import SessionShown, session_shown
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
SHOWN = 2000
"""Characters of any text that the page shows; the API has the rest."""


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


def session(shown: SessionShown) -> dict[str, Any]:
    """A session with its newest traces, each signal decoded."""
    whole = session_shown(shown)
    turns = cast(list[dict[str, Any]], whole["traces"])
    left_out = max(0, len(turns) - TRACES)
    return {
        **whole,
        "signals": _signals(shown.signals),
        "left_out": left_out,
        "traces": [
            {**turn, "number": number, "signals": _signals(trace.signals)}
            for number, (turn, trace) in enumerate(zip(turns, shown.traces, strict=True), 1)
            if number > left_out
        ],
    }


def trace(full: FullTrace) -> dict[str, Any]:
    """A trace with its span tree."""
    rows = span_rows(full.spans)
    header = full.shown.entry.header
    return {
        "trace": full.trace,
        "header": header,
        "seconds": max(0, header.end_time_unix_nano - header.start_time_unix_nano) / 1e9,
        "rows": rows[:SPANS],
        "left_out": max(0, len(rows) - SPANS),
        "signals": _signals(full.shown.signals),
        "expired": not full.spans,
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


def _signals(raw: Sequence[msgspec.Raw]) -> list[dict[str, Any]]:
    """Decoded; a stand-in whose verdict has come is left out, the worst score comes first."""
    signals = [cast(dict[str, Any], msgspec.json.decode(signal)) for signal in raw]
    final = {signal["evaluator"] for signal in signals if signal["final"]}
    shown = [s for s in signals if s["final"] or s["evaluator"] not in final]
    return sorted(shown, key=_worst_first)


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


def plain(value: Any) -> str:
    """A JSON value as text, cut."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"


def escaped(value: Any) -> str:
    """A value inside a query string."""
    return quote(str(value), safe="")


FILTERS: dict[str, Callable[..., str]] = {
    "score": score,
    "grade": grade,
    "duration": duration,
    "moment": moment,
    "words": words,
    "plain": plain,
    "q": escaped,
}
