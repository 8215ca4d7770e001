"""Each id is counted once, in little memory."""

import gc
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from collector.export.label_counts import CountedIds


def test_the_newest_ids_are_known_and_at_most_twice_as_many() -> None:
    ids = CountedIds(100)

    assert all(ids.add(f"{number:032x}") for number in range(1_000))
    assert not any(ids.add(f"{number:032x}") for number in range(900, 1_000))
    assert all(ids.add(f"{number:032x}") for number in range(800))


def test_an_id_that_is_met_again_is_not_forgotten() -> None:
    ids = CountedIds(10)
    ids.add("often")

    for number in range(1_000):
        ids.add(str(number))
        assert not ids.add("often")


@given(st.lists(st.text(max_size=2), max_size=60))
def test_before_anything_is_forgotten_an_id_is_new_once(met: list[str]) -> None:
    ids, known = CountedIds(64), set[str]()

    for each in met:
        assert ids.add(each) is (each not in known)
        known.add(each)


def peak() -> int:
    """Bytes at most, while 5,000 ids are counted of which 1,000 are remembered."""
    ids = CountedIds(1_000)
    gc.collect()
    tracemalloc.start()
    for number in range(5_000):
        ids.add(str(number))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_its_memory_does_not_grow() -> None:
    """The least of a few tries: what other threads of the test process allocate meanwhile is counted, too."""
    # A new table is made while the two are there.
    assert min(peak() for _ in range(5)) < 3 * 16_000 + 2_000
