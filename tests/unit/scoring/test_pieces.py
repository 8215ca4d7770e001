"""A trace that is only a piece of another one's turn: it is kept, and nothing is said of it or of its session."""

from dataclasses import replace
from typing import Any

from msgspec.structs import replace as with_fields

from collector.records.sessions import session_key
from collector.records.trace_views import SummarisedTrace
from tests.support.scoring_fakes import make_record, open_sessions, rules, summarised, taken

KEY = session_key("bot", "s")


def piece(trace_id: str, **fields: Any) -> SummarisedTrace:
    record = make_record(trace_id, turn=False, **fields)
    return summarised(with_fields(record, trace=replace(record.trace, is_part=True)))


def test_neither_a_piece_nor_a_session_of_pieces_has_signals() -> None:
    sessions = open_sessions(rules())
    assert (effects := taken(sessions, piece("p"), offset=0)).publish == ()
    assert effects.changes
    (closed,) = sessions.close_all("shutdown")
    assert (closed.publish, closed.work, closed.closed) == ((), (), None)


def test_a_turn_beside_pieces_is_scored_as_without_them() -> None:
    alone, beside = open_sessions(rules()), open_sessions(rules())
    taken(beside, piece("p"), offset=0)
    wanted = taken(alone, summarised(make_record("t")), offset=1)
    got = taken(beside, summarised(make_record("t")), offset=1)
    assert [each.id for each in got.publish] == [each.id for each in wanted.publish] != []
    (closed,) = beside.close_all("shutdown")
    assert closed.publish
    assert closed.closed == ("bot", "shutdown")


def test_a_piece_that_late_spans_make_a_turn_is_scored_for_the_first_time() -> None:
    sessions = open_sessions(rules())
    taken(sessions, piece("t"), offset=0)
    effects = taken(sessions, summarised(make_record("t", revision=1)), offset=1)
    firsts = [each.is_first for each in effects.publish if each.signal.scope == "trace"]
    assert firsts == [True, True]


def test_a_piece_that_comes_again_as_a_turn_is_no_repeat() -> None:
    """Its spans came again, with the parent that they lacked, after it was forgotten: all else is equal."""
    record = make_record("t")
    turn = summarised(record)
    part = summarised(with_fields(record, trace=replace(record.trace, is_part=True)))
    assert part.summary.turn.digest == turn.summary.turn.digest
    sessions = open_sessions(rules())

    taken(sessions, part, offset=0)
    effects = taken(sessions, turn, offset=1)

    firsts = [each.is_first for each in effects.publish if each.signal.scope == "trace"]
    assert firsts == [True, True]
    assert sessions.take(part, key=KEY, offset=2, now=0.0) == "repeated"
    assert sessions.take(turn, key=KEY, offset=3, now=0.0) == "repeated"
