"""What a session keeps of a trace, before its outcomes are there. Pure."""

from __future__ import annotations

from collections.abc import Collection

from collector.records.sessions import SessionTurn
from collector.records.traces import TraceRecord
from evaluators.content import has_text
from evaluators.formulas.agreement import writes
from evaluators.formulas.trace_calls import first_model
from evaluators.formulas.work import work_of
from evaluators.matching.repeats import call_counts
from evaluators.matching.text import QUESTION, clip
from evaluators.model import Trace, Turn
from evaluators.trace.runaway import model_calls


def unscored_turn(
    record: TraceRecord,
    *,
    service: str,
    session_id: str,
    offset: int,
    now: float = 0.0,
    read_only: Collection[str] = (),
) -> SessionTurn:
    """The trace as its window keeps it, before its outcomes are there; `now` is the record's log time.

    `read_only` are tools that change nothing.
    """
    trace = record.trace
    return SessionTurn(
        service=service,
        session_id=session_id,
        turn=_turn(trace, read_only),
        revision=record.revision,
        offset=offset,
        seen=record.seen,
        agent=trace.agent,
        agent_version=trace.agent_version,
        session_source=trace.session_source,
        span_id=trace.root_span_id,
        closed=trace.closed,
        placed_at=now,
    )


def _turn(trace: Trace, read_only: Collection[str]) -> Turn:
    return Turn(
        trace_id=trace.trace_id,
        start_time_unix_nano=trace.start_time_unix_nano,
        duration=trace.duration,
        digest=trace.digest,
        output=None if trace.output is None else clip(trace.output),
        input=None if trace.input is None else clip(trace.input, QUESTION),
        tokens=trace.tokens,
        cost_usd=trace.cost_usd,
        model_calls=model_calls(trace),
        tool_calls=len(trace.tool_calls),
        call_counts=call_counts(trace.tool_calls),
        has_text=has_text(trace),
        work=work_of(trace),
        writes=writes(trace.tool_calls, read_only),
        model=first_model(trace),
    )
