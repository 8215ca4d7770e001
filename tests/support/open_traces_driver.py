"""The open traces of a partition, with a log time and an offset that move by themselves."""

from collections.abc import Generator

from collector.assembly.closed_traces import ClosedTraces
from collector.assembly.open_trace import Closing
from collector.assembly.open_traces import OpenTraces, TakeResult
from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Position, Record
from collector.records.closings import Mark
from tests.support.spans import Made, request

WINDOW = TraceWindow(
    root_grace=6, local_root_grace=30, idle=300, max_age=3600, late=600, max_revisions=3
)


def finished(steps: Generator[None, None, TakeResult]) -> TakeResult:
    """What the steps come to, with nothing between them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class OpenTracesDriver:
    """The open traces of partition 0: `send` puts one request into them at a log time."""

    def __init__(
        self,
        window: TraceWindow = WINDOW,
        closed_traces: ClosedTraces | None = None,
        *,
        by_ref: bool = False,
    ) -> None:
        self.open_traces = OpenTraces(
            0, window, closed_traces or ClosedTraces(), start=None, by_ref=by_ref
        )
        self.next = 0

    def send(self, time: float, *spans: Made | bytes) -> TakeResult:
        """Take one request: of these spans, or a raw one."""
        made = [each for each in spans if isinstance(each, Made)]
        raw = next((each for each in spans if isinstance(each, bytes)), None) or request(*made)
        position = Position(SPANS, 0, self.next)
        self.next += 1
        record = Record(position=position, key=b"", value=raw, time=time)
        return finished(self.open_traces.taking(record))

    def tick(self, now: float) -> list[Closing]:
        """What closes by log time `now`."""
        return finished(self.open_traces.ticking(now)).closings

    def complete(self, closing: Closing, *, revision: int = 0, offset: int = 0) -> list[Position]:
        """As if it had been written: the trace to (`traces`, 0, 7)."""
        mark = Mark(
            trace_id=closing.trace_id,
            last_offset=closing.last_offset,
            revision=revision,
            session_key=b"shop\0s",
            traces_partition=0,
            traces_offset=7,
            closed_at=closing.closed_at,
            local_root=closing.root == "local",
            rootless=closing.root == "missing",
        )
        self.open_traces.closings.release_hold(closing)
        return self.open_traces.closings.complete(closing, mark, offset)
