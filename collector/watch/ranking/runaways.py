"""Whether a trace runs away, by what the closed traces of its service, agent and first model usually do. Pure."""

from __future__ import annotations

from typing import NamedTuple

from collector.records.signal import Signal, signal_id, trace_input_digest
from collector.records.subject import signal_of
from collector.records.traces import RunawayRecord, TraceCalls
from collector.watch.ranking.histories import Histories, digest_of, number_of
from evaluators.formulas.trace_calls import TraceCallsHistory
from evaluators.trace.runaway import is_found, with_usual_calls

CallHistories = Histories[TraceCallsHistory]
"""By service and name, bounded."""


class ModelCallCount(NamedTuple):
    """The model calls of a trace, as its history keeps them."""

    service: str
    name: str  # of the history
    trace: int
    model_calls: int

    @classmethod
    def of(cls, service: str, trace: TraceCalls) -> ModelCallCount:
        name = digest_of(service, trace.agent, trace.model)
        return cls(service, name, number_of(service, trace.trace_id), trace.model_calls)


def put(histories: CallHistories, call: ModelCallCount) -> None:
    history = histories.get(call.service, call.name) or TraceCallsHistory()
    history.put(call.trace, (call.model_calls,))
    histories.put(call.service, call.name, history)


def runaway_signal(histories: CallHistories, record: RunawayRecord) -> Signal | None:
    """The signal; None for an open trace that does not run away: a healthy one says nothing."""
    subject, outcome, among = record.subject, record.outcome, ""
    trace_id = subject.trace_id or ""
    history = histories.get(
        subject.service, digest_of(subject.service, subject.agent, record.model)
    )
    if history is not None:
        number = number_of(subject.service, trace_id)
        outcome = with_usual_calls(outcome, record.model_calls, history, number)
        among = "" if outcome is record.outcome else history.digest(number)
    if subject.closed is None and not is_found(outcome):
        return None
    id_ = signal_id(
        scope="trace",
        service=subject.service,
        subject=trace_id,
        outcome=outcome,
        input_digest=trace_input_digest(record.digest, (among,) if among else ()),
    )
    return signal_of(subject, outcome, id_)


def mark(record: RunawayRecord) -> str:
    subject = record.subject
    parts = subject.service, subject.trace_id or "", str(subject.closed), str(subject.revision)
    return digest_of("runaway", *parts, record.digest)
