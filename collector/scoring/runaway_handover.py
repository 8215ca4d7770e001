"""A trace of which the model calls of its agent's other traces decide whether it ran away. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from collector.records.sessions import SessionTurn
from collector.records.traces import RunawayRecord
from collector.scoring.effects import Publication
from collector.scoring.outcome_signals import trace_subject
from collector.scoring.rules import RUNAWAY
from evaluators.model import Outcome
from evaluators.trace.runaway import LEAST_MODEL_CALLS, is_found, may_be_found


def without_possible_runaway(
    entry: SessionTurn, outcomes: Sequence[Outcome], publish: list[Publication]
) -> tuple[list[Publication], tuple[RunawayRecord, ...]]:
    """What is published of a trace here, and its outcome of `runaway` where that is decided elsewhere."""
    if entry.turn.model_calls < LEAST_MODEL_CALLS:
        return publish, ()
    own = next((each for each in outcomes if each.evaluator == RUNAWAY), None)
    if own is None or is_found(own) or not may_be_found(own, entry.turn.model_calls):
        return publish, ()
    record = RunawayRecord(
        subject=trace_subject(entry),
        model=entry.turn.model,
        model_calls=entry.turn.model_calls,
        digest=entry.turn.digest,
        outcome=own,
        is_first=any(each.is_first for each in publish if each.outcome.evaluator == RUNAWAY),
    )
    return [each for each in publish if each.outcome.evaluator != RUNAWAY], (record,)
