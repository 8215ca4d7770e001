"""What an open span costs beside its wire bytes: at most 1.1, and 0.1 where the log can be asked for its bytes."""

import tracemalloc
from random import Random

import pytest

from collector.assembly.closed_traces import ClosedTraces
from collector.assembly.open_traces import OpenTraces
from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Position, Record
from tests.support.open_traces_driver import finished
from tests.support.spans import Made, child, request, root

SPAN_BYTES = 4300


def pieces() -> list[bytes]:
    """200 traces of 8 to 30 spans, the root last, five spans to a record, as a batch of 64 is cut."""
    random = Random(7)
    made: list[bytes] = []
    for trace in range(1, 201):
        size = random.randint(8, 30)
        spans = [*(child(number, trace=trace) for number in range(2, size + 1)), root(trace)]
        sized = [
            Made(trace=each.trace, span=each.span, parent=each.parent, text="x" * SPAN_BYTES)
            for each in spans
        ]
        made += [request(*sized[start : start + 5]) for start in range(0, size, 5)]
    return made


def memory_ratio(*, by_ref: bool = False) -> float:
    """Bytes that open traces add / the bytes of its pieces; `by_ref`: they hold where these stand in the log."""
    values = pieces()
    wire = sum(map(len, values))
    open_traces = OpenTraces(
        0,
        TraceWindow(root_grace=1e6, idle=1e6, max_age=1e6),
        ClosedTraces(),
        start=None,
        by_ref=by_ref,
    )
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for offset, value in enumerate(values):
            fresh = bytes(bytearray(value))
            position = Position(SPANS, 0, offset)
            finished(open_traces.taking(Record(position=position, key=b"", value=fresh, time=1.0)))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(open_traces) == 200
    return (after - before) / wire


@pytest.mark.bench
def test_memory_per_buffered_span() -> None:
    ratio = memory_ratio()

    print(f"memory per buffered span / its wire bytes: {ratio:.3f}")
    assert ratio <= 1.1


@pytest.mark.bench
def test_memory_per_span_whose_bytes_stay_in_the_log() -> None:
    ratio = memory_ratio(by_ref=True)

    print(f"memory per span that stays in the log / its wire bytes: {ratio:.3f}")
    assert ratio <= 0.1
