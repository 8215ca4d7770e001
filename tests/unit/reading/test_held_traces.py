"""What a worker holds of the traces that it read is bounded, and known on the other side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.reading import held_traces
from collector.reading.held_traces import HeldTraces, TraceName


def name(number: int, check: int = 0) -> TraceName:
    return TraceName(f"{number:032x}", "d", check)


def test_a_trace_is_held_until_it_is_taken() -> None:
    held: HeldTraces[str] = HeldTraces()
    held.put(name(1), "one", 10)

    assert name(1) in held
    assert held.take(name(1)) == "one"
    assert held.take(name(1)) is None


def test_the_same_trace_with_other_bytes_is_another_one() -> None:
    held: HeldTraces[str] = HeldTraces()
    held.put(name(1, check=7), "closed as idle", 10)

    assert held.take(name(1, check=8)) is None


def test_one_large_trace_is_held_by_itself() -> None:
    held: HeldTraces[str] = HeldTraces()
    held.put(name(1), "small", 10)
    held.put(name(2), "large", held_traces.MOST_BYTES + 1)
    assert (name(1) in held, name(2) in held) == (False, True)

    held.put(name(3), "small", 10)

    assert (name(2) in held, name(3) in held) == (False, True)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 5))))
def test_it_is_bounded_and_two_that_put_and_take_alike_hold_the_same(
    script: list[tuple[bool, int, int]],
) -> None:
    worker: HeldTraces[int] = HeldTraces()
    main: HeldTraces[None] = HeldTraces()
    sizes: dict[TraceName, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_traces, "MOST", 4)
        patch.setattr(held_traces, "MOST_BYTES", 10)
        for puts, number, size in script:
            each = name(number)
            if puts:
                worker.put(each, number, size)
                main.put(each, None, size)
                sizes[each] = size
            else:
                assert (each in main) == (each in worker)
                assert worker.take(each) in {None, number}
                main.take(each)
            inside = [each for each in map(name, range(10)) if each in worker]
            assert inside == [each for each in map(name, range(10)) if each in main]
            assert len(worker) == len(inside) <= 4
            assert sum(sizes[each] for each in inside) <= 10
