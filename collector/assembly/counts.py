"""What assembly tells its operators: counters, gauges, and one line for whatever is passed over."""

from __future__ import annotations

import logging
from collections.abc import Collection

from collector.assembly.buffer import Buffer
from collector.assembly.closing import Step
from collector.assembly.finished import Finished
from collector.log.port import SPANS, Position
from collector.telemetry import Telemetry

_log = logging.getLogger(__name__)


class Counts:
    """Every family of assembly (specs/alerting.md, section 3)."""

    def __init__(self, telemetry: Telemetry, *, limit: int) -> None:
        self._telemetry = telemetry
        telemetry.buffer_limit_bytes.set(limit)

    def step(self, position: Position, step: Step) -> None:
        """A record of `spans` was taken."""
        if step.poison is not None:
            self.poison(position, step.poison)
        self._add(step.invalid, "invalid")
        self._add(step.duplicates, "duplicate")
        for service, spans in step.ignored.items():
            self._late(service, "ignored", spans)

    def finished(self, finished: Finished) -> None:
        """A closing was written, or passed over."""
        closing, record = finished.closing, finished.record
        if finished.poison is not None:
            self._telemetry.poison_records.labels(SPANS).inc()
            _log.warning(
                "The trace `%s` in `%s`, partition %d, from offset %d, is passed over: %s",
                closing.trace_id.hex(),
                SPANS,
                closing.partition,
                closing.hold.offset,
                finished.poison,
            )
        self._late(finished.service, "duplicate", finished.duplicates)
        self._late(finished.service, "ignored", finished.ignored)
        if record is None:
            return
        if finished.revision is None:
            self._closed(finished)
            return
        self._late(finished.service, "revised", finished.revision.merged.new)
        if record.session_changed:
            self._late(finished.service, "session_changed", finished.revision.merged.new)

    def poison(self, position: Position, why: str) -> None:
        """A record that can never be processed."""
        self._telemetry.poison_records.labels(position.topic).inc()
        _log.warning(
            "A record of `%s`, partition %d, offset %d, is passed over: %s",
            position.topic,
            position.partition,
            position.offset,
            why,
        )

    def evicted(self, marks: int) -> None:
        """Marks were forgotten for want of room."""
        self._telemetry.marks_evicted.inc(marks)

    def held(self, buffers: Collection[Buffer]) -> None:
        """What is open now."""
        self._telemetry.traces_active.set(sum(map(len, buffers)))
        self._telemetry.buffer_bytes.set(sum(buffer.size for buffer in buffers))

    def _closed(self, finished: Finished) -> None:
        service = self._telemetry.service(finished.service)
        self._telemetry.traces_closed.labels(service, finished.closing.reason).inc()
        if finished.record is not None:
            for gap in finished.gaps:
                self._telemetry.trace_gaps.labels(service, gap).inc()

    def _late(self, service: str, action: str, spans: int) -> None:
        if spans:
            self._telemetry.late_spans.labels(self._telemetry.service(service), action).inc(spans)

    def _add(self, spans: int, reason: str) -> None:
        if spans:
            self._telemetry.spans_ignored.labels(reason).inc(spans)
