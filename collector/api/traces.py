"""One trace in full: from the log while it is there, from the index after that."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from msgspec import structs

from collector.api.off_loop import OffLoop
from collector.api.query import Query, TraceShown
from collector.api.store import TraceEntry, as_trace
from collector.base.errors import Retryable, TooLarge, Undecodable
from collector.log.port import TRACES, Log, Position
from collector.otlp import display
from collector.otlp.names import name_shown
from collector.otlp.redaction import Redactor
from collector.records.span_refs import whole_read
from collector.records.traces import TraceRecord, decode_traces
from evaluators.dialects.show import show
from evaluators.model import ToolDefinition, Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTrace:
    """A trace for `/api/v1/traces/{trace_id}` and the page; `spans` is empty once the log has dropped them."""

    trace: dict[str, Any]
    spans: Sequence[dict[str, Any]]
    shown: TraceShown
    whole: Trace  # what `trace` shows; without message content where none is to be shown
    pieces: Sequence[bytes]
    """Its raw spans without secrets; none with `redaction.content: drop`, and once the log has dropped them."""


@dataclass(slots=True, eq=False, kw_only=True)
class Traces:
    log: Log
    query: Query
    off_loop: OffLoop
    content: bool
    redactor: Redactor | None = None  # of spans that another program wrote to the log

    async def find(self, trace_id: str, then: Callable[[FullTrace], T]) -> T | None:
        """What `then` makes of the trace, in the thread that read it; None when the index does not know it.

        Raises Refused: too many requests wait for whole traces.
        """
        async with self.off_loop.place():
            shown = await asyncio.to_thread(self.query.trace, trace_id)
            if shown is None:
                return None
            record = await self._record(shown.entry)
            # Thousands of spans take longer than the event loop may be held.
            spans = await self._spans(record)
            return await asyncio.to_thread(lambda: then(self._full(shown, record, spans)))

    async def _record(self, entry: TraceEntry) -> TraceRecord | None:
        row = entry.row
        if row.offset is None:
            return None
        try:
            record = await self.log.get(Position(TRACES, row.partition, row.offset))
            read = None if record is None else decode_traces(record.value)
        except (Retryable, Undecodable):
            return None
        if isinstance(read, TraceRecord) and read.trace.trace_id == entry.header.trace_id:
            return read
        return None

    async def _spans(self, record: TraceRecord | None) -> tuple[bytes, ...]:
        try:
            return () if record is None else await whole_read(self.log, record.spans)
        except Retryable:
            return ()

    def _full(
        self, shown: TraceShown, record: TraceRecord | None, spans: Sequence[bytes]
    ) -> FullTrace:
        found = as_trace(shown.entry.header) if record is None else record.trace
        whole = found if self.content else _redacted(found)
        pieces = tuple(self._redacted(spans))
        return FullTrace(
            trace=show(whole),
            spans=[
                {**span, "traceId": whole.trace_id}  # of segments, it is that of the segment
                for span in display.decode(pieces, content=self.content)
            ],
            shown=shown,
            whole=whole,
            pieces=pieces if self.content else (),
        )

    def _redacted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            try:
                yield piece if self.redactor is None else self.redactor.piece(piece)
            except (TooLarge, Undecodable):
                continue


def _redacted(trace: Trace) -> Trace:
    """The trace without message content (`redaction.content: drop`), whatever its record holds."""
    return replace(
        trace,
        user_id=None,
        attributes={},
        turns=(),
        system=None,
        input=None,
        output=None,
        error=None,
        models=tuple(map(name_shown, trace.models)),
        tools_offered=tuple(ToolDefinition(name=name_shown(t.name)) for t in trace.tools_offered),
        tool_calls=tuple(
            structs.replace(
                call,
                name=name_shown(call.name),
                id=call.id and name_shown(call.id),
                arguments=None,
                result=None,
                error=None,
            )
            for call in trace.tool_calls
        ),
        model_calls=tuple(
            structs.replace(call, output=None, error=None) for call in trace.model_calls
        ),
        steps=tuple(structs.replace(step, output=None) for step in trace.steps),
    )
