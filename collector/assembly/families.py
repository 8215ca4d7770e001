"""The metric families of assembly, and the counts that it makes of them."""

from collections.abc import Collection

from collector.assembly.closing import Closing
from collector.assembly.open_traces import OpenTraces
from collector.assembly.trace_table import TakeResult
from collector.base.telemetry import OTHER, Telemetry
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

    def closed(self, closing: Closing) -> None:
        revision, trace = closing.revision, closing.trace
        if closing.poison is not None:
            first = Position(SPANS, closing.closings.partition, closing.hold.offset)
            self._poison.unprocessable(
                first, f"it begins trace `{closing.trace_id.hex()}`: {closing.poison}"
            )
        if revision is not None:
            service = revision.old.trace.service
            self._late(service, "duplicate", revision.duplicates)
            if not closing.is_written:
                self._late(service, "ignored", revision.new)
            elif trace is not None:
                self._late(service, "revised", revision.new)
                self._late(service, "session_changed", revision.new * trace.session_changed)
        elif closing.late:
            mark = closing.closings.written.get(closing.trace_id)
            self._late(OTHER if mark is None else mark.service, "ignored", closing.spans)
        elif trace is not None:
            self._telemetry.count_service(trace.service, closing.closed_at)
            service = self._telemetry.service(trace.service)
            self._families.traces_closed.labels(service, closing.reason).inc()
            for gap in trace.gaps:
                self._families.trace_gaps.labels(service, gap).inc()

    def glanced(self, result: str) -> None:
        self._families.trace_glances.labels(result).inc()

    def evicted(self) -> None:
        """A closed trace was forgotten because too many are remembered."""
        self._families.marks_evicted.inc()

    def open(self, partitions: Collection[OpenTraces]) -> None:
        self._families.traces_active.set(sum(map(len, partitions)))
        self._families.buffer_bytes.set(sum(each.size for each in partitions))

    def _late(self, service: str, action: str, spans: int) -> None:
        if spans:
            self._families.late_spans.labels(self._telemetry.service(service), action).inc(spans)

    def _ignored(self, spans: int, reason: str) -> None:
        if spans:
            self._families.spans_ignored.labels(reason).inc(spans)
