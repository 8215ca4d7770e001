"""What the room knows of the turns of a session."""

from __future__ import annotations

from collector.judging import turns
from collector.judging.turns import SeenTurn, Turns


def turn(start: int, name: str | None = None, *, offset: int = 0) -> SeenTurn:
    return SeenTurn(start=start, trace_id=name or str(start), offset=offset)


def test_a_later_revision_takes_the_place_of_the_earlier_one() -> None:
    seen = Turns()
    seen.place(b"k", turn(5, "a"))
    seen.place(b"k", turn(6, "b"))
    assert seen.place(b"k", turn(7, "a", offset=9)) == 2
    assert [each.trace_id for each in seen.before(b"k", turn(8, "c"), 3)] == ["b", "a"]
    assert seen.before(b"k", turn(8, "c"), 1)[0].offset == 9


def test_of_a_long_session_only_the_newest_are_kept_and_no_place_is_told() -> None:
    seen = Turns()
    for start in range(turns.TURNS):
        assert seen.place(b"k", turn(start, f"{start:05}")) == start + 1
    newest = turn(turns.TURNS, "new")
    assert seen.place(b"k", newest) is None
    assert [each.start for each in seen.before(b"k", newest, 2)] == [998, 999]


def test_closing_forgets_those_turns_alone() -> None:
    seen = Turns()
    seen.place(b"k", turn(1, offset=4))
    seen.place(b"k", turn(2, offset=5))
    seen.closed(b"k", [4])
    assert seen.place(b"k", turn(3, offset=6)) == 2
    seen.closed(b"other", [5])
