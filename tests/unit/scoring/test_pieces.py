"""A trace that is only a piece of another one's turn: it is kept, and nothing is said of it or of its session."""

from dataclasses import replace
from typing import Any

from msgspec.structs import replace as with_fields

from collector.config.tree import SessionWindow
from collector.records.sessions import session_key
from collector.records.trace_views import SummarisedTrace
from collector.scoring.effects import Effects, Placed
from collector.scoring.open_sessions import OpenSessions
from tests.support.scoring_fakes import make_record, rules, summarised

KEY = session_key("bot", "s")


def made() -> OpenSessions:
    return OpenSessions(partition=0, rules=rules(), limits=SessionWindow())


def piece(trace_id: str, **fields: Any) -> SummarisedTrace:
    record = make_record(trace_id, turn=False, **fields)
    return summarised(with_fields(record, trace=replace(record.trace, is_part=True)))


def take(sessions: OpenSessions, trace: SummarisedTrace, offset: int) -> Effects:
    task = sessions.take(trace, key=KEY, offset=offset, now=0.0)
    assert isinstance(task, Placed)
    return sessions.finish(task, {})


def test_neither_a_piece_nor_a_session_of_pieces_has_signals() -> None:
    sessions = made()
    assert (effects := take(sessions, piece("p"), 0)).publish == ()
    assert effects.changes
    (closed,) = sessions.close_all("shutdown")
    assert (closed.publish, closed.work, closed.closed) == ((), (), None)


def test_a_turn_beside_pieces_is_scored_as_without_them() -> None:
    alone, beside = made(), made()
    take(beside, piece("p"), 0)
    wanted = take(alone, summarised(make_record("t")), 1)
    got = take(beside, summarised(make_record("t")), 1)
    assert [each.id for each in got.publish] == [each.id for each in wanted.publish] != []
    (closed,) = beside.close_all("shutdown")
    assert closed.publish
    assert closed.closed == ("bot", "shutdown")


def test_a_piece_that_late_spans_make_a_turn_is_scored_for_the_first_time() -> None:
    sessions = made()
    take(sessions, piece("t"), 0)
    effects = take(sessions, summarised(make_record("t", revision=1)), 1)
    assert [each.is_first for each in effects.publish if each.signal.scope == "trace"] == [
        True,
        True,
    ]


def test_a_piece_that_comes_again_as_a_turn_is_no_repeat_and_a_turn_that_comes_again_is_one() -> (
    None
):
    """Its spans came again, with the parent that they lacked, after it was forgotten: all else is equal."""
    record = make_record("t")
    turn = summarised(record)
    part = summarised(with_fields(record, trace=replace(record.trace, is_part=True)))
    assert part.summary.turn.digest == turn.summary.turn.digest
    sessions = made()

    take(sessions, part, 0)
    effects = take(sessions, turn, 1)

    assert [each.is_first for each in effects.publish if each.signal.scope == "trace"] == [
        True,
        True,
    ]
    assert sessions.take(part, key=KEY, offset=2, now=0.0) == "repeated"
    assert sessions.take(turn, key=KEY, offset=3, now=0.0) == "repeated"
