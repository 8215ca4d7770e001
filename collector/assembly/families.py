"""The metric families of assembly, and the counts that it makes of them."""

from collections.abc import Collection

from collector.assembly.closed_result import ClosedResult
from collector.assembly.open_traces import OpenTraces, TakeResult
from collector.base.telemetry import Telemetry
from collector.log.consumer import PoisonReport
from collector.log.port import SPANS, Position


class AssemblyFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.traces_closed = counter("traces_closed", "Traces closed, by reason.", "service reason")
        self.late_spans = counter(
            "late_spans",
            "Spans of a trace that was closed already, by what was done.",
            "service action",
        )
        self.spans_ignored = counter(
            "spans_ignored", "Spans that assembly passed over, by reason.", "reason"
        )
        self.marks_evicted = counter(
            "marks_evicted",
            "Closed traces forgotten because too many are remembered: a later span opens them again.",
        )
        self.trace_gaps = counter(
            "trace_gaps", "Traces that lack something, by what.", "service gap"
        )
        self.trace_glances = counter(
            "trace_glances", "Looks at traces that are still open, by result.", "result"
        )
        """By result: `nothing`, `suspect`, `closed`, `busy`, `failed`, `too_large`."""
        self.traces_active = gauge("traces_active", "Traces open now.")
        self.buffer_bytes = gauge("buffer_bytes", "Memory of all open traces.")
        self.buffer_limit_bytes = gauge(
            "buffer_limit_bytes", "The limit of buffer_bytes (windows.memory)."
        )


class AssemblyCounts:
    """Counts results of `OpenTraces.take`, closed traces and open ones; poison is also named in the log.

    `telemetry`: bounds the label `service`. `poison`: counts and names what is passed over. `limit`: of the bytes of
    open traces (`windows.memory`).
    """

    def __init__(self, telemetry: Telemetry, poison: PoisonReport, *, limit: int) -> None:
        self._families = AssemblyFamilies(telemetry)
        self._telemetry = telemetry
        self._poison = poison
        self._families.buffer_limit_bytes.set(limit)

    def taken(self, position: Position, result: TakeResult) -> None:
        if result.poison is not None:
            self._poison.unprocessable(position, result.poison)
        self.moved(result)

    def moved(self, result: TakeResult) -> None:
        self._ignored(result.invalid, "invalid")
        self._ignored(result.duplicates, "duplicate")
        for (service, action), spans in result.late.items():
            self._late(service, action, spans)

    def closed(self, result: ClosedResult) -> None:
        closing, record = result.closing, result.record
        if result.poison is not None:
            first = Position(SPANS, closing.owner.partition, closing.hold.offset)
            self._poison.unprocessable(
                first, f"it begins trace `{closing.trace_id.hex()}`: {result.poison}"
            )
        self._late(result.service, "duplicate", result.duplicates)
        self._late(result.service, "ignored", result.ignored)
        if record is None:
            return
        revision = result.closing.revision
        if revision is None:
            self._closed(result)
            return
        self._late(result.service, "revised", revision.new)
        if record.session_changed:
            self._late(result.service, "session_changed", revision.new)

    def glanced(self, result: str) -> None:
        self._families.trace_glances.labels(result).inc()

    def evicted(self) -> None:
        """A closed trace was forgotten because too many are remembered."""
        self._families.marks_evicted.inc()

    def open(self, partitions: Collection[OpenTraces]) -> None:
        self._families.traces_active.set(sum(map(len, partitions)))
        self._families.buffer_bytes.set(sum(each.size for each in partitions))

    def _closed(self, result: ClosedResult) -> None:
        self._telemetry.count_service(result.service, result.closing.closed_at)
        service = self._telemetry.service(result.service)
        self._families.traces_closed.labels(service, result.closing.reason).inc()
        for gap in result.gaps:
            self._families.trace_gaps.labels(service, gap).inc()

    def _late(self, service: str, action: str, spans: int) -> None:
        if spans:
            self._families.late_spans.labels(self._telemetry.service(service), action).inc(spans)

    def _ignored(self, spans: int, reason: str) -> None:
        if spans:
            self._families.spans_ignored.labels(reason).inc(spans)
