"""A buffer with a log time and an offset that move by themselves."""

from __future__ import annotations

from collector.assembly.buffer import Buffer
from collector.assembly.closing import Closing, Step
from collector.assembly.marks import Marks
from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Position, Record
from collector.records.closings import Mark
from tests.support.spans import Made, request

WINDOW = TraceWindow(
    root_grace=6, local_root_grace=30, idle=300, max_age=3600, late=600, max_revisions=3
)


class Lane:
    """One partition's buffer: `send` puts one request into it at a log time."""

    def __init__(self, window: TraceWindow = WINDOW, marks: Marks | None = None) -> None:
        self.buffer = Buffer(0, window, marks or Marks(), start=None)
        self.next = 0

    def send(self, time: float, *spans: Made, value: bytes | None = None) -> Step:
        raw = request(*spans) if value is None else value
        position = Position(SPANS, 0, self.next)
        self.next += 1
        return self.buffer.take(Record(position=position, key=b"", value=raw, time=time))

    def settle(self, closing: Closing, *, revision: int = 0, offset: int = 0) -> list[Position]:
        """As if it had been written: the trace to (`traces`, 0, 7)."""
        mark = Mark(
            trace_id=closing.trace_id,
            reach=closing.reach,
            revision=revision,
            session_key=b"shop\0s",
            traces_partition=0,
            traces_offset=7,
            closed_at=closing.closed_at,
            local_root=closing.root == "local",
            rootless=closing.root == "missing",
        )
        self.buffer.let_go(closing)
        return self.buffer.settle(closing, mark, offset)
