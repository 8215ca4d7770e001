"""The tail answers only for what it saw whole."""

from __future__ import annotations

from collector.log.disk.tail import Tail
from collector.log.embedded.staging import Staged
from collector.log.port import SPANS, TRACES, Position

PLACE = (TRACES, 0)


def staged(offset: int, size: int = 10) -> Staged:
    return Staged(Position(TRACES, 0, offset), b"k", b"%d" % offset + b"." * (size - 1), ())


def offsets(tail: Tail, since: int, head: int, *, end: int = 1000, most: int = 256) -> object:
    found = tail.slice(PLACE, since, end=end, most=most, head=head)
    return found and ([record.position.offset for record in found.records], found.end)


def filled(count: int = 5, limit: int = 1000, first: int = 0) -> Tail:
    tail = Tail(limit)
    tail.add([staged(offset) for offset in range(first, first + count)], time=7.0)
    return tail


def test_it_gives_what_was_written_from_any_offset_on() -> None:
    tail = filled()

    assert offsets(tail, 0, 5) == ([0, 1, 2, 3, 4], True)
    assert offsets(tail, 3, 5) == ([3, 4], True)
    assert offsets(tail, 5, 5) == ([], True)
    assert offsets(tail, 0, 5, most=2) == ([0, 1], False)
    assert offsets(tail, 1, 5, end=2) == ([1], True)


def test_it_is_silent_while_the_writer_is_ahead_of_it() -> None:
    """Else a reader would stand at the end, at a time that a record is older than (DESIGN section 4, rule 3)."""
    assert offsets(filled(), 0, head=6) is None


def test_it_is_silent_about_what_stood_before_it() -> None:
    assert offsets(filled(first=3), 2, 8) is None
    assert offsets(filled(first=3), 3, 8) == ([3, 4, 5, 6, 7], True)


def test_a_gap_begins_it_anew() -> None:
    tail = filled()
    tail.add([staged(9)], time=8.0)

    assert offsets(tail, 4, 10) is None
    assert offsets(tail, 9, 10) == ([9], True)


def test_it_is_bounded_by_bytes() -> None:
    tail = filled(count=50, limit=100)

    assert offsets(tail, 39, 50) is None
    assert offsets(tail, 41, 50) == (list(range(41, 50)), True)


def test_what_everybody_has_had_goes() -> None:
    tail = filled()
    tail.passed(PLACE, 3)

    assert offsets(tail, 2, 5) is None
    assert offsets(tail, 3, 5) == ([3, 4], True)


def test_released_and_dropped_records_are_not_given() -> None:
    tail = filled()
    tail.forget([Position(TRACES, 0, 1), Position(SPANS, 0, 2)])
    assert offsets(tail, 0, 5) == ([0, 2, 3, 4], True)

    tail.forget_topics(frozenset({TRACES}))
    assert offsets(tail, 0, 5) is None
