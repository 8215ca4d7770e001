"""What is known of a record waits for its reader: bounded, and never longer than until it has passed."""

from collections.abc import Sequence

from collector.log.port import SPANS, Position
from collector.otlp.scan import Scan, scan
from collector.records.handed import SPAN_COST, TRACE_COST, Handed
from tests.support.spans import child, request, root


def at(offset: int) -> Position:
    return Position(SPANS, 0, offset)


def held(*spans: int) -> Scan:
    return scan(request(root(), *[child(each) for each in spans]))


def test_it_is_taken_once() -> None:
    handed, first = Handed(), held()
    handed.put(at(3), first)

    assert handed.take(at(2)) is None
    assert handed.take(at(3)) is first
    assert handed.take(at(3)) is None
    assert handed.size == 0


def test_what_the_reader_has_passed_is_forgotten() -> None:
    handed = Handed()
    for offset in (1, 2, 4):
        handed.put(at(offset), held())

    assert handed.take(at(3)) is None

    assert len(handed) == 1
    assert handed.take(at(4)) is not None
    assert handed.size == 0


def test_what_comes_after_its_reader_goes_with_the_next() -> None:
    handed = Handed()
    handed.put(at(7), held())
    handed.put(at(5), held())

    assert handed.take(at(8)) is None

    assert (len(handed), handed.size) == (0, 0)


def test_a_full_one_keeps_what_its_reader_needs_first() -> None:
    resource = sum(map(len, held().resources[root().trace.to_bytes(16, "big")]))
    one = TRACE_COST + 2 * SPAN_COST + resource
    handed = Handed(2 * one)
    for offset in range(4):
        handed.put(at(offset), held(2))

    assert [handed.take(at(offset)) is not None for offset in range(4)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_large_resource_counts() -> None:
    known = held()
    large: dict[bytes, Sequence[bytes]] = dict.fromkeys(known.resources, (b"x" * 10_000,))
    handed = Handed(10_000)

    handed.put(at(1), Scan(traces=known.traces, resources=large, ranges=known.ranges, invalid=0))

    assert len(handed) == 0
