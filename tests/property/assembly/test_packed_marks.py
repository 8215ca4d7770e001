"""Packed marks are an ordered dictionary: what is put again is the newest, the oldest leaves first."""

import tracemalloc
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.assembly.closed_traces import ID_LENGTH, ClosingMark, PackedMarks
from collector.base.errors import Undecodable

IDS = st.integers(0, 40).map(lambda number: number.to_bytes(16, "big"))
OFFSETS = st.integers(-1, (1 << 63) - 1)
TRACES = st.builds(
    ClosingMark,
    offset=OFFSETS,
    last_offset=OFFSETS,
    revision=st.integers(0, (1 << 32) - 1),
    closed_at=st.floats(0, 2e9),
    traces_partition=st.integers(0, 1000),
    traces_offset=OFFSETS,
    root=st.sampled_from(("parentless", "local", "missing")),
    service=st.text(max_size=3),
)
STEPS = st.lists(st.tuples(st.sampled_from(("put", "put", "remove", "oldest")), IDS, TRACES))


@given(STEPS)
def test_they_do_as_an_ordered_dictionary_does(steps: list[tuple[str, bytes, ClosingMark]]) -> None:
    packed, plain = PackedMarks(), OrderedDict[bytes, ClosingMark]()
    for step, trace_id, trace in steps:
        if step == "put":
            packed.put(trace_id, trace)
            plain[trace_id] = trace
            plain.move_to_end(trace_id)
        elif step == "remove":
            packed.remove(trace_id)
            plain.pop(trace_id, None)
        elif plain:
            oldest = packed.oldest()
            assert oldest is not None
            assert oldest == plain.popitem(last=False)
            packed.remove(oldest[0])
        assert len(packed) == len(plain)
        assert packed.oldest() == next(iter(plain.items()), None)
        assert packed.get(trace_id) == plain.get(trace_id)

    assert [packed.get(each) for each in plain] == [*plain.values()]


def closed(number: int) -> ClosingMark:
    return ClosingMark(
        offset=number,
        last_offset=number << 20,
        revision=0,
        closed_at=1.7e9 + number,
        traces_partition=3,
        traces_offset=number << 20,
        root="parentless",
        service="".join(("shop", str(number % 7))),
    )


def test_a_mark_takes_at_most_400_bytes_however_many_came_and_went() -> None:
    count = 20_000
    marks = PackedMarks()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3 * count):
            marks.put(number.to_bytes(16, "big"), closed(number))
            if number >= count:
                marks.remove((number - count).to_bytes(16, "big"))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert taken / count < 400, taken / count


@pytest.mark.parametrize(
    ("trace_id", "trace"),
    [(b"short", closed(1)), (b"t" * 16, closed(1)._replace(revision=1 << 64))],
)
def test_what_no_trace_has_is_refused(trace_id: bytes, trace: ClosingMark) -> None:
    marks = PackedMarks()

    with pytest.raises(Undecodable):
        marks.put(trace_id, trace)
    assert (len(marks), marks.oldest()) == (0, None)
    assert ID_LENGTH == 16
