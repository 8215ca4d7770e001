"""What `forward.keep` would keep of recordings: traces, spans and bytes by reason. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from collector.base.errors import Undecodable
from collector.config.forward import Keep
from collector.forward.keeping import ClosedTrace, Keeping
from collector.log.port import Record
from collector.otlp.trace_state import randomness_of
from collector.records.keeping import Decision
from collector.records.sent_trace import SentTrace, decode_sent

_FOREVER = 1e18  # seconds: no recording is as long, and every decision may still change


@dataclass(slots=True)
class Amount:
    traces: int = 0
    spans: int = 0
    size: int = 0  # bytes of raw spans

    def add(self, other: Amount) -> None:
        self.traces += other.traces
        self.spans += other.spans
        self.size += other.size


@dataclass(slots=True)
class KeptOfRecordings:
    """Takes sessions as they close; what is slow or first is so in the order of the traces' ends."""

    settings: Keep
    _traces: list[tuple[int, ClosedTrace, int]] = field(
        default_factory=list[tuple[int, ClosedTrace, int]]
    )
    """When each ended, and how many spans it has."""
    _failed: set[bytes] = field(default_factory=set[bytes])

    def add(self, signals: Iterable[Mapping[str, Any]], traces: Iterable[Record]) -> None:
        """A session that has closed: its final signals, and the records of its traces."""
        fell = [each for each in signals if each["success"] is False]
        session_fell = any(each["scope"] == "session" for each in fell)
        of_traces = {each["trace_id"] for each in fell if each["scope"] == "trace"}
        for record in traces:
            try:
                read = decode_sent(record.value)
            except Undecodable:
                continue
            if isinstance(read, SentTrace):
                trace = read.trace
                fails = session_fell or trace.trace_id in of_traces or trace.status == "error"
                self._put(read, record, fails=fails)

    def by_reason(
        self, sizes: Mapping[str, int], randomness: Mapping[str, int]
    ) -> dict[str, Amount]:
        """What is kept, by reason, and `dropped`.

        By trace id: bytes of raw spans, and the randomness where it is not that of the id.
        """
        spans = {trace.trace_id: count for _, trace, count in self._traces}
        found: dict[str, Amount] = {}
        for each in self.decisions(randomness):
            amount = found.setdefault(each.reason if each.is_kept else "dropped", Amount())
            size = sizes.get(each.trace_id.hex(), 0)
            amount.add(Amount(traces=1, spans=spans[each.trace_id], size=size))
        return found

    def decisions(self, randomness: Mapping[str, int]) -> list[Decision]:
        keeping = Keeping(self.settings, late=_FOREVER)
        found: list[Decision] = []
        for ended, trace, _ in sorted(self._traces, key=lambda each: each[0]):
            random = randomness.get(trace.trace_id.hex(), trace.randomness)
            keeping.closed(replace(trace, randomness=random), ended / 1e9)
            found += [decision for decision, _ in keeping.due(ended / 1e9)]
        return [*found, *(decision for decision, _ in keeping.due(float("inf")))]

    def fails(self, trace_id: bytes) -> bool:
        """Whether a score of the trace, or of its session, did not pass."""
        return trace_id in self._failed

    def _put(self, read: SentTrace, record: Record, *, fails: bool) -> None:
        trace = read.trace
        trace_id = bytes.fromhex(trace.trace_id)
        closed = ClosedTrace(
            trace_id=trace_id,
            offset=len(self._traces),
            service=trace.service,
            agent=trace.agent,
            version=trace.agent_version,
            session=hashlib.sha256(record.key).digest()[:16],
            duration=trace.seconds,
            randomness=randomness_of(trace_id, b""),
            failed=fails,
            is_other=trace.is_other,
        )
        self._traces.append((trace.end_time_unix_nano, closed, trace.spans))
        if fails:
            self._failed.add(trace_id)
