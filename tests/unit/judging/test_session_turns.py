"""What the room knows of the turns of a session."""

import pytest

from collector.judging import session_turns
from collector.judging.session_turns import PlacedTurn, SessionTurns


def turn(start: int, name: str | None = None, *, offset: int = 0) -> PlacedTurn:
    return PlacedTurn(start=start, trace_id=name or str(start), offset=offset)


def test_a_later_revision_takes_the_place_of_the_earlier_one() -> None:
    turns = SessionTurns()
    turns.add(b"k", turn(5, "a"))
    turns.add(b"k", turn(6, "b"))
    assert turns.add(b"k", turn(7, "a", offset=9)) == 2
    assert [each.trace_id for each in turns.before(b"k", turn(8, "c"), 3)] == ["b", "a"]
    assert turns.before(b"k", turn(8, "c"), 1)[0].offset == 9


def test_of_a_long_session_only_the_newest_turns_are_kept_without_a_number() -> None:
    turns = SessionTurns()
    for start in range(session_turns.TURNS):
        assert turns.add(b"k", turn(start, f"{start:05}")) == start + 1
    newest = turn(session_turns.TURNS, "new")
    assert turns.add(b"k", newest) is None
    assert [each.start for each in turns.before(b"k", newest, 2)] == [998, 999]


def test_closing_forgets_those_turns_alone() -> None:
    turns = SessionTurns()
    turns.add(b"k", turn(1, offset=4))
    turns.add(b"k", turn(2, offset=5))
    turns.closed(b"k", [4])
    assert turns.add(b"k", turn(3, offset=6)) == 2
    turns.closed(b"other", [5])


def test_the_turns_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_turns, "TURNS_IN_ALL", 10)
    turns = SessionTurns()
    for start in range(8):
        turns.add(b"%d" % (start % 2), turn(start, offset=start))
    turns.closed(b"0", [0, 2])

    for start in range(10, 16):
        turns.add(b"long", turn(start))
    assert turns.add(b"1", turn(20)) == 5, "nothing is forgotten up to the limit"
    turns.add(b"long", turn(30))

    assert turns.before(b"0", turn(40), 9) == (), "the session that was quiet longest"
    assert len(turns.before(b"1", turn(40), 9)) == 5
