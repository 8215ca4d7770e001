"""One trace: its page, its recording and its case as files."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import text_of
from collector.api.held_feedback import said_by_people
from collector.api.page.feedback_pages import said_view
from collector.api.page.rendering import Rendering
from collector.api.page.session_view import TRACES
from collector.api.page.sheet import PAGE, Sheet, left_out
from collector.api.page.signal_rows import failing, runs_away, signal_rows, why_no_scores
from collector.api.page.span_tree import span_rows, span_shown
from collector.api.page.talk import talk
from collector.api.traces import FullTrace, Traces
from collector.base.frames import LENGTH
from collector.config.strict_yaml import in_yaml
from evaluators.dialects.exchanged import read_exchanged
from evaluators.dialects.reading_order import Line, reading_order
from evaluators.expectations import case_of

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
    lines = _lines(full)
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
        "unscored": why and head.name(why),
        "runs_away": runs_away(signals),
        "is_open": full.shown.entry.row.offset is None,
        "talk": groups,
        "lines_left_out": len(lines) - sum(len(group["rows"]) for group in groups),
        "rows": spans,
        "shown_spans": {span_id: number for span_id, (number, _) in numbered.items()},
        "left_out": left_out(rows, spans),
        "expired": not full.spans,
        "has_recording": bool(full.pieces),
    }


def _lines(full: FullTrace) -> tuple[Line, ...]:
    """Without messages where they are too many to read, or the spans are gone or not to be shown."""
    small = sum(map(len, full.pieces)) <= MAX_READ
    pieces = full.pieces if small else ()
    return reading_order(full.whole, read_exchanged(pieces, trace_id=full.whole.trace_id))


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


class TracePages:
    """Files hold raw spans or texts of messages: there are none where no content is to be shown."""

    def __init__(self, traces: Traces, rendering: Rendering, *, link: str | None = None) -> None:
        """`link`: a URL with `{trace_id}`, which leads to the spans in the user's own backend."""
        self._link = link
        self._traces = traces
        self._rendering = rendering

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
            return self._rendering.missing("trace")
        trace_id = trace_id.lower()
        found = await self._traces.find(trace_id, then)
        return self._rendering.missing("trace", trace_id) if found is None else found

    def _page(self, found: FullTrace) -> Response:
        link = self._link and self._link.replace("{trace_id}", quote(_id(found)))
        return self._rendering.page("trace.html", view=trace_view(found), link=link)

    def _recording(self, found: FullTrace) -> Response:
        if not found.pieces:
            return self._rendering.missing("recording", _id(found))
        name = f"trace-{_id(found)}.otlp"
        return self._rendering.file(
            recording(found), name=name, media_type="application/octet-stream"
        )

    def _case(self, found: FullTrace) -> Response:
        if not found.pieces:
            return self._rendering.missing("recording", _id(found))
        name = f"case-{_id(found)}.yaml"
        return self._rendering.file(case(found), name=name, media_type="application/yaml")


def _id(found: FullTrace) -> str:
    return found.whole.trace_id
