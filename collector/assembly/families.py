"""The metric families of assembly."""

from __future__ import annotations

from collector.telemetry import Telemetry


class AssemblyFamilies:
    """Traces that close, spans that come late or are ignored, and what is open."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.traces_closed = telemetry.counter(
            "traces_closed", "Traces closed, by why.", "service", "reason"
        )
        self.late_spans = telemetry.counter(
            "late_spans",
            "Spans of a trace that was closed already, by what was done.",
            "service",
            "action",
        )
        self.spans_ignored = telemetry.counter(
            "spans_ignored", "Spans that assembly passed over, by why.", "reason"
        )
        self.marks_evicted = telemetry.counter(
            "marks_evicted",
            "Closed traces forgotten for want of room: a later span opens them anew.",
        )
        self.trace_gaps = telemetry.counter(
            "trace_gaps", "Traces that lack something, by what.", "service", "gap"
        )
        self.traces_active = telemetry.gauge("traces_active", "Traces open now.")
        self.buffer_bytes = telemetry.gauge("buffer_bytes", "Wire bytes of all open traces.")
        self.buffer_limit_bytes = telemetry.gauge(
            "buffer_limit_bytes", "The limit of buffer_bytes (windows.memory)."
        )
