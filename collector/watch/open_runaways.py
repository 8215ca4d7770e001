"""The open traces that run away, from the signals of `runaway`. Pure: time is an argument.

A trace is one from its first finding until its final outcome. A trace whose outcome never comes, because its record
could not be written or expired, is forgotten once it must have closed.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from collector.log.state_table import Parts, StateTable
from collector.records.signal import Signal, decode_signal, unix_seconds
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.standing import AgentLabels, OpenRunaway
from evaluators.formulas.trace_calls import USUAL

RUNAWAY = "runaway"
MAX_TRACES = 1000
"""Open traces that run away, of all agents."""
MAX_CLOSED = 4096  # traces that closed last: what is found of one of them by then came too late


class OpenRunaways:
    """At most MAX_TRACES of them; the one that was found longest ago is forgotten first."""

    def __init__(self, max_age: float) -> None:
        """`max_age`: seconds after which a trace has closed (`windows.trace.max_age`)."""
        self._max_age = max_age
        self._open: dict[str, OpenRunaway] = {}
        self.table: StateTable[str, OpenRunaway] = StateTable(
            "runaway", str, OpenRunaway, encode=self._open.get, restore=self._restore
        )
        self._closed: OrderedDict[str, int] = OrderedDict()
        """Revisions of the traces that closed last."""

    def take(self, subject: SubjectHeader, header: SignalHeader, json: memoryview) -> str | None:
        """Take in a signal of `runaway`, its `json` to be read only if need be; returns as `find` does.

        Raises Undecodable: as `find`.
        """
        if subject.trace_id is None:
            return None
        if not header.final:
            return self.find(decode_signal(bytes(json)))
        self.close(subject.trace_id, subject.revision)
        return None

    def find(self, signal: Signal) -> str | None:
        """Take in what is said of a trace that is open; returns the reason for which one was forgotten to make room.

        Raises Undecodable: its time cannot be read.
        """
        trace_id = signal.trace_id
        if trace_id is None or signal.score != 0:
            return None
        if signal.revision <= self._closed.get(trace_id, -1):
            return None
        seen = unix_seconds(signal.time)
        until = seen + self._max_age
        earlier = self._open.get(trace_id)
        self.table.change(trace_id)
        self._open[trace_id] = OpenRunaway(
            trace_id=trace_id,
            service=signal.service,
            agent=signal.agent,
            session_id=signal.session_id,
            reason="model_calls" if USUAL in signal.metadata else "repeated_calls",
            since=seen if earlier is None else min(earlier.since, seen),
            until=until if earlier is None else max(earlier.until, until),
        )
        if len(self._open) <= MAX_TRACES:
            return None
        self._forget(min(self._open.values(), key=lambda each: each.since).trace_id)
        return "max_traces"

    def close(self, trace_id: str, revision: int) -> None:
        """The final outcome of a trace is here: it is open no longer."""
        self._closed[trace_id] = max(revision, self._closed.pop(trace_id, -1))
        if len(self._closed) > MAX_CLOSED:
            self._closed.popitem(last=False)
        self._forget(trace_id)

    def shown(self, now: float) -> Iterator[OpenRunaway]:
        """Those that are open at log time `now`, the one that was found longest ago first."""
        return (each for each in tuple(self._open.values()) if each.until > now)

    def by_agent(
        self, labels: Callable[[str, str], AgentLabels], now: float
    ) -> dict[AgentLabels, list[OpenRunaway]]:
        """Those of `shown`; `labels`: of a service and an agent."""
        found: dict[AgentLabels, list[OpenRunaway]] = {}
        for each in self.shown(now):
            found.setdefault(labels(each.service, each.agent), []).append(each)
        return found

    def expire(self, now: float) -> int:
        """Forget those whose outcome never came; returns how many there were."""
        gone = [each.trace_id for each in self._open.values() if each.until <= now]
        for trace_id in gone:
            self._forget(trace_id)
        return len(gone)

    def _restore(self, trace_id: str, runaway: OpenRunaway, _parts: Parts) -> None:
        self._open[trace_id] = runaway

    def _forget(self, trace_id: str) -> None:
        if self._open.pop(trace_id, None) is not None:
            self.table.forget(trace_id)
