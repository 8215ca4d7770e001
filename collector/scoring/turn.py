"""A trace as its session keeps it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from collector.records.sessions import SessionTurn
from collector.records.traces import TraceRecord
from evaluators.model import Outcome, Trace, Turn

OUTPUT_BYTES = 8 * 1024
_ASSUMED = frozenset({"loop_detection", "coherence"})
_encoder = msgspec.json.Encoder(order="deterministic")


def cut_output(text: str | None) -> str | None:
    """The first 8 KiB (UTF-8), cut at a character: all that History ever sees of an output."""
    if text is None or len(text) * 4 <= OUTPUT_BYTES:
        return text
    return text[:OUTPUT_BYTES].encode(errors="replace")[:OUTPUT_BYTES].decode(errors="ignore")


def unscored_turn(
    record: TraceRecord, *, service: str, session_id: str, offset: int, now: float = 0.0
) -> SessionTurn:
    """The trace's place in the window before its outcomes are known."""
    trace = record.trace
    return SessionTurn(
        service=service,
        session_id=session_id,
        turn=_turn(trace),
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


def is_turn(entry: SessionTurn) -> bool:
    """Whether an agent did anything; other traces are held (a trace counts once) but belong to no formula."""
    return bool(entry.turn.model_calls or entry.turn.tool_calls)


def with_outcomes(
    entry: SessionTurn, outcomes: Iterable[Outcome], signal_ids: dict[str, str]
) -> SessionTurn:
    """The entry with these outcomes in place of earlier ones of the same evaluators; `signal_ids` are theirs."""
    given = tuple(outcomes)
    names = {each.evaluator for each in given}
    scores = {name: value for name, value in entry.turn.scores.items() if name not in names}
    unscored = {name for name in entry.turn.unscored if name not in names}
    waiting = {each.evaluator: each for each in entry.outcomes if each.evaluator not in names}
    for each in given:
        if not each.final:
            waiting[each.evaluator] = replace(each, explanation=None, metadata={}, evidence=())
        elif each.state in {"failed", "skipped"}:
            unscored.add(each.evaluator)
        elif (value := _counted(each)) is not None:
            scores[each.evaluator] = value
    final = {each.evaluator for each in given if each.final}
    ids = {name: id_ for name, id_ in entry.signal_ids.items() if name not in names}
    ids |= {name: id_ for name, id_ in signal_ids.items() if name in final}
    return replace(
        entry,
        turn=replace(
            entry.turn, scores=dict(sorted(scores.items())), unscored=tuple(sorted(unscored))
        ),
        outcomes=tuple(waiting[name] for name in sorted(waiting) if name not in final),
        signal_ids=dict(sorted(ids.items())),
        due=tuple(name for name in entry.due if name not in final),
    )


def let_go(entry: SessionTurn) -> SessionTurn:
    """Without the output text; History reads it from the trace record when it must."""
    return replace(entry, turn=replace(entry.turn, output=None), kept=False)


def bare(turn: Turn) -> Turn:
    """As session formulas get it: numbers, no text."""
    return turn if turn.output is None else replace(turn, output=None)


def _counted(outcome: Outcome) -> float | None:
    if outcome.state == "scored":
        return outcome.score
    return outcome.assumed if outcome.evaluator in _ASSUMED else None


def _turn(trace: Trace) -> Turn:
    return Turn(
        trace_id=trace.trace_id,
        start_time_unix_nano=trace.start_time_unix_nano,
        duration=trace.duration,
        digest=trace.digest,
        output=cut_output(trace.output),
        tokens=trace.tokens,
        cost_usd=trace.cost_usd,
        model_calls=len(trace.model_calls),
        tool_calls=len(trace.tool_calls),
        repeated_calls=_repeated_calls(trace),
    )


def _repeated_calls(trace: Trace) -> int:
    calls = [(call.name, _encoder.encode(call.arguments)) for call in trace.tool_calls]
    return len(calls) - len(set(calls))
