"""The tail answers only for segments of which it was given every record, and no end lies beyond what is visible."""

from collector.log.disk.tail import RECORD_COST, Tail
from collector.log.embedded.polling import SharedLogTime
from collector.log.port import SPANS, TRACES, Position, Record
from tests.support.clocks import SetClock

PARTITION = (TRACES, 0)


def written(offset: int, count: int = 1) -> Record:
    value = b"%d" % offset + b"." * 9
    position = Position(TRACES, 0, offset)
    return Record(position=position, key=b"k", value=value, time=7.0, count=count)


def offsets(tail: Tail, since: int, end_offset: int, *, end: int = 1000, most: int = 256) -> object:
    cached = tail.slice(PARTITION, since, end=end, most=most, end_offset=end_offset)
    return cached and ([each.position.offset for each in cached.records], cached.end)


def filled(count: int = 5, limit: int = 1 << 20, first: int = 0) -> Tail:
    tail = Tail(limit)
    tail.add(written(offset) for offset in range(first, first + count))
    return tail


def test_it_gives_what_was_written_from_any_offset_on() -> None:
    tail = filled()

    assert offsets(tail, 0, 5) == ([0, 1, 2, 3, 4], True)
    assert offsets(tail, 3, 5) == ([3, 4], True)
    assert offsets(tail, 5, 5) == ([], True)
    assert offsets(tail, 0, 5, most=2) == ([0, 1], False)
    assert offsets(tail, 1, 5, end=2) == ([1], True)


def test_records_of_several_offsets_follow_one_another() -> None:
    tail = Tail(1 << 20)
    counts = [3, 1, 2]
    ends = [2, 3, 5]
    for end, count in zip(ends, counts, strict=True):
        tail.add([written(end, count)])

    assert offsets(tail, 0, 6) == ([2, 3, 5], True)
    assert offsets(tail, 3, 6) == ([3, 5], True)
    tail.passed(PARTITION, 3)
    assert offsets(tail, 0, 6) is None
    assert offsets(tail, 3, 6) == ([3, 5], True)


def test_it_is_silent_while_the_writer_is_ahead_of_it() -> None:
    """Else a reader would stand at the end, at a time that a record is older than (docs/decisions/002)."""
    assert offsets(filled(), 0, end_offset=6) is None


def test_it_is_silent_about_records_before_its_first() -> None:
    assert offsets(filled(first=3), 2, 8) is None
    assert offsets(filled(first=3), 3, 8) == ([3, 4, 5, 6, 7], True)


def test_a_gap_starts_a_new_segment() -> None:
    tail = filled()
    tail.add([written(9)])

    assert offsets(tail, 4, 10) is None
    assert offsets(tail, 9, 10) == ([9], True)


def test_it_is_bounded_by_the_bytes_that_records_take() -> None:
    tail = filled(count=50, limit=10 * (RECORD_COST + 11))

    assert offsets(tail, 39, 50) is None
    assert offsets(tail, 41, 50) == (list(range(41, 50)), True)


def test_records_that_every_reader_has_read_go() -> None:
    tail = filled()
    tail.passed(PARTITION, 3)

    assert offsets(tail, 2, 5) is None
    assert offsets(tail, 3, 5) == ([3, 4], True)


def test_released_and_dropped_records_are_not_given() -> None:
    tail = filled()
    tail.forget([Position(TRACES, 0, 1), Position(SPANS, 0, 2)])
    assert offsets(tail, 0, 5) == ([0, 2, 3, 4], True)


def test_the_end_does_not_pass_a_transaction_that_is_not_visible_yet() -> None:
    clock = SetClock(10.0)
    time = SharedLogTime(clock)

    in_flight = time.begin()
    clock.now = 15.0
    before = time.end()
    time.finish()

    assert before <= in_flight
    assert time.end() == 15.0
