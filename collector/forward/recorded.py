"""What `forward.keep` would keep of recordings: traces, spans and bytes by reason. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from collector.base.errors import Undecodable
from collector.config.forward import Keep
from collector.forward.keeping import Keeping
from collector.log.port import Record
from collector.records.keeping import KEPT_REASONS, ClosedTrace, Decision
from collector.records.sent_trace import SentTrace, decode_sent

_FOREVER = 1e18  # seconds: no recording is as long, and every decision may still change


@dataclass(slots=True)
class Amount:
    traces: int = 0
    spans: int = 0
    size: int = 0  # bytes of raw spans


@dataclass(slots=True)
class KeptOfRecordings:
    """Takes sessions as they close; what is slow or first is so in the order of the traces' ends."""

    settings: Keep
    _traces: list[tuple[SentTrace, ClosedTrace]] = field(
        default_factory=list[tuple[SentTrace, ClosedTrace]]
    )

    def add(self, signals: Iterable[Mapping[str, Any]], traces: Sequence[Record]) -> None:
        """A session that has closed: its final signals, and the records of its traces."""
        fell = [each for each in (signals if traces else ()) if each["success"] is False]
        session_fell = any(each["scope"] == "session" for each in fell)
        of_traces = {each["trace_id"] for each in fell if each["scope"] == "trace"}
        for record in traces:
            with suppress(Undecodable):
                read = decode_sent(record.value)
                if isinstance(read, SentTrace):
                    fails = session_fell or read.trace.trace_id in of_traces
                    closed = read.closed(key=record.key, offset=len(self._traces), failed=fails)
                    self._traces.append((read, closed))

    def by_reason(self, sizes: Mapping[str, int]) -> dict[str, Amount]:
        """What is kept, by reason, then `dropped` and `all`. `sizes`: bytes of raw spans, by trace id."""
        spans = {closed.trace_id: read.trace.spans for read, closed in self._traces}
        found = {each: Amount() for each in (*KEPT_REASONS, "dropped", "all")}
        for each in self.decisions():
            trace_id = each.trace.trace_id
            for amount in (found[each.reason if each.is_kept else "dropped"], found["all"]):
                amount.traces += 1
                amount.spans += spans[trace_id]
                amount.size += sizes.get(trace_id.hex(), 0)
        return {name: each for name, each in found.items() if each.traces}

    def decisions(self) -> list[Decision]:
        keeping = Keeping(self.settings, late=_FOREVER)
        found: list[Decision] = []
        for read, trace in sorted(self._traces, key=lambda each: each[0].trace.end_time_unix_nano):
            ended = read.trace.end_time_unix_nano / 1e9
            keeping.closed(trace, ended)
            found += keeping.due(ended)
        return [*found, *keeping.due(float("inf"))]
