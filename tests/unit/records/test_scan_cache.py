"""What is known of a record waits for its reader: bounded, and never longer than until it has passed."""

from collections.abc import Sequence

from collector.log.port import SPANS, Position
from collector.otlp.scan import Scan, scan
from collector.records.scan_cache import SPAN_COST, TRACE_COST, ScanCache
from tests.support.spans import child, request, root


def at(offset: int) -> Position:
    return Position(SPANS, 0, offset)


def held(*spans: int) -> Scan:
    return scan(request(root(), *[child(each) for each in spans]))


def test_it_is_taken_once() -> None:
    scans, first = ScanCache(), held()
    scans.put(at(3), first)

    assert scans.take(at(2)) is None
    assert scans.take(at(3)) is first
    assert scans.take(at(3)) is None
    assert scans.size == 0


def test_what_the_reader_has_passed_is_forgotten() -> None:
    scans = ScanCache()
    for offset in (1, 2, 4):
        scans.put(at(offset), held())

    assert scans.take(at(3)) is None

    assert len(scans) == 1
    assert scans.take(at(4)) is not None
    assert scans.size == 0


def test_what_comes_after_its_reader_goes_with_the_next() -> None:
    scans = ScanCache()
    scans.put(at(7), held())
    scans.put(at(5), held())

    assert scans.take(at(8)) is None

    assert (len(scans), scans.size) == (0, 0)


def test_a_full_one_keeps_what_its_reader_needs_first() -> None:
    resource = sum(map(len, held().resources[root().trace.to_bytes(16, "big")]))
    one = TRACE_COST + 2 * SPAN_COST + resource
    scans = ScanCache(2 * one)
    for offset in range(4):
        scans.put(at(offset), held(2))

    assert [scans.take(at(offset)) is not None for offset in range(4)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_large_resource_counts() -> None:
    known = held()
    large: dict[bytes, Sequence[bytes]] = dict.fromkeys(known.resources, (b"x" * 10_000,))
    scans = ScanCache(10_000)

    scans.put(at(1), Scan(traces=known.traces, resources=large, ranges=known.ranges, invalid=0))

    assert len(scans) == 0
