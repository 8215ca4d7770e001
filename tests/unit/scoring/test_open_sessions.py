from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replaced

from collector.records.sessions import SessionHead, SessionTurn, session_key
from collector.records.signal import SessionTraces, Signal
from collector.records.traces import SessionRecord, VerdictRecord
from collector.scoring.effects import Effects, PlacedTrace, Publication, Tombstone
from collector.scoring.open_sessions import PLUGIN_LAG, OpenSessions
from collector.scoring.rules import JudgedRules
from collector.scoring.session_end import unscored_turn
from tests.support.scoring_fakes import (
    HEAD,
    closed_in,
    judged_rules,
    make_record,
    open_sessions,
    rules,
    summarised,
    verdict_of,
)


def make_sessions(
    *,
    max_open: int = 100,
    judged: JudgedRules | None = None,
) -> OpenSessions:
    return open_sessions(rules(judged), max_open=max_open)


def make_head(session: str, *, offset: int, since: int = 0, closed: bool = False) -> SessionHead:
    name = {"session_id": session}
    return replaced(HEAD, **name, offset=offset, since=since, closed=closed)


def make_turn(session: str, trace_id: str, *, offset: int) -> SessionTurn:
    record = make_record(trace_id, session=session)
    return unscored_turn(summarised(record), service="bot", session_id=session, offset=offset)


def tried(
    sessions: OpenSessions,
    trace_id: str,
    *,
    session: str = "a",
    offset: int,
    now: float = 0.0,
    stand_in: bool = False,
    **made: Any,
) -> PlacedTrace | str:
    record = summarised(make_record(trace_id, session=session, **made), stand_in=stand_in)
    return sessions.take(record, key=session_key("bot", session), offset=offset, now=now)


def finished(sessions: OpenSessions, trace_id: str, **given: Any) -> Effects:
    placed = tried(sessions, trace_id, **given)
    assert isinstance(placed, PlacedTrace)
    return sessions.finish(placed, {})


def take(sessions: OpenSessions, trace_id: str, *, session: str, offset: int) -> list[Effects]:
    """Make room for the trace, and take it."""
    key, record = session_key("bot", session), summarised(make_record(trace_id, session=session))
    before = list(sessions.make_room(record, key=key, offset=offset, now=0.0))
    return [*before, finished(sessions, trace_id, session=session, offset=offset)]


def test_turns_without_a_head_leave_only_tombstones() -> None:
    sessions = make_sessions()
    orphan = make_turn("a", "t1", offset=3)

    changes = sessions.restore([orphan])

    assert changes == (Tombstone(state=orphan),)
    assert len(sessions) == 0


def test_turns_of_an_earlier_life_do_not_come_back() -> None:
    sessions = make_sessions()
    old = make_turn("a", "old", offset=3)

    changes = sessions.restore(
        [old, make_turn("a", "new", offset=9), make_head("a", offset=9, since=5)]
    )

    assert changes == (Tombstone(state=old),)
    (final,) = sessions.close_all("idle")
    assert [each.traces for each in final.changes if isinstance(each, SessionRecord)] == [(9,)]


def test_a_closed_head_refuses_records_before_it_until_the_commit_has_passed() -> None:
    sessions = make_sessions()
    head = make_head("a", offset=3, since=5, closed=True)
    sessions.restore([head])

    assert tried(sessions, "t", offset=4) == "repeated"
    assert sessions.committed(4) == ()
    assert sessions.committed(5) == (Tombstone(state=head),)


def test_after_a_restart_the_oldest_touched_session_closes_first() -> None:
    sessions = make_sessions(max_open=2)
    sessions.restore([make_head("b", offset=7), make_head("a", offset=2)])

    assert closed_in(take(sessions, "t", session="c", offset=9)) == ["a"]


def test_a_session_closes_before_its_own_record_that_came_too_late() -> None:
    sessions = make_sessions()
    take(sessions, "t1", session="a", offset=0)
    key = session_key("bot", "a")

    record = summarised(make_record("t2", session="a"))
    effects = list(sessions.make_room(record, key=key, offset=5, now=1e9))
    task = sessions.take(record, key=key, offset=5, now=1e9)

    assert closed_in(effects) == ["a"]
    assert isinstance(task, PlacedTrace)
    assert task.is_new


def test_a_record_that_was_passed_is_no_repeat_of_a_session_that_closed_since() -> None:
    """Session `b` was at offset 7 when the record at offset 3 closes it: what it has seen is a repeat, nothing else."""
    sessions = make_sessions(max_open=1)
    take(sessions, "t1", session="b", offset=7)

    assert closed_in(take(sessions, "t2", session="c", offset=3)) == ["b"]

    assert tried(sessions, "t1", session="b", offset=7) == "repeated"
    assert isinstance(tried(sessions, "t3", session="b", offset=8), PlacedTrace)


def test_a_session_with_a_stand_in_waits_for_its_verdict() -> None:
    sessions = make_sessions(judged=judged_rules(max_lag=2e9))
    finished(sessions, "t1", offset=0, stand_in=True)

    assert list(sessions.close_due(1e9)) == []
    assert len(sessions) == 1


(OURS,) = judged_rules().trace
THEIRS = replace(OURS, spec=replace(OURS.spec, name="acme/confidence", method="custom"))


@pytest.mark.parametrize(
    ("ours_are_due", "closes_at"), [(False, [PLUGIN_LAG]), (True, [])], ids=["theirs", "both"]
)
def test_a_session_waits_a_moment_for_what_third_parties_say_and_long_for_a_judge(
    *, ours_are_due: bool, closes_at: list[float]
) -> None:
    awaited = JudgedRules(trace=(OURS,) if ours_are_due else (), plugins=(THEIRS,), max_lag=2e9)
    sessions = make_sessions(judged=awaited)
    finished(sessions, "t1", offset=0, stand_in=True)

    found = {after: list(sessions.close_due(1e9 + after)) for after in (0.0, 14.0, PLUGIN_LAG)}

    assert [after for after, effects in found.items() if closed_in(effects)] == closes_at
    told = [each for effects in found.values() for one in effects for each in one.publish]
    about = [each.outcome.reason for each in told if each.outcome.evaluator == THEIRS.spec.name]
    assert about == ["judge_lag"] * len(closes_at)


def test_a_trace_of_a_session_that_waits_for_third_parties_begins_that_wait_anew() -> None:
    sessions = make_sessions(judged=JudgedRules(plugins=(THEIRS,), max_lag=2e9))
    take(sessions, "t1", session="a", offset=0)
    assert list(sessions.close_due(1e9)) == []
    take(sessions, "t2", session="a", offset=1)

    assert not closed_in(list(sessions.close_due(1e9 + PLUGIN_LAG)))
    assert closed_in(list(sessions.close_due(1e9 + 2 * PLUGIN_LAG))) == ["a"]


def test_a_revision_older_than_the_one_in_the_window_is_not_scored() -> None:
    sessions = make_sessions()
    finished(sessions, "t", offset=0, revision=2)

    assert tried(sessions, "t", offset=1, revision=1) == "outdated"


def published(publish: tuple[Publication, ...]) -> list[tuple[str, str, bool, bool]]:
    """(scope, evaluator, final, whether it is the first final one) of each signal."""
    return [
        (each.signal.scope, each.signal.evaluator, each.signal.final, each.is_first)
        for each in publish
    ]


def test_a_trace_gives_signals_and_its_head_last() -> None:
    sessions = make_sessions()

    effects = finished(sessions, "t", offset=4, now=2.0)

    assert published(effects.publish) == [
        ("trace", "confidence", True, True),
        ("trace", "loop_detection", True, True),
        ("session", "agent_reliability", False, False),
        ("session", "latency", False, False),
    ]
    turn, head = effects.changes
    assert isinstance(turn, SessionTurn)
    assert turn.turn.scores.keys() == {"confidence", "loop_detection"}
    assert isinstance(head, SessionHead)
    assert (head.offset, head.last) == (4, 2.0)


def take_started(
    sessions: OpenSessions, trace_id: str, *, start: int, offset: int, revision: int = 0
) -> list[Signal]:
    """The signals of a trace that started so many seconds after 1970."""
    made = {"start": start * 10**9, "seen": 60.0, "revision": revision}
    effects = finished(sessions, trace_id, offset=offset, now=60.0, **made)
    return [each.signal for each in effects.publish]


def test_a_session_names_the_trace_that_began_it_and_its_newest_in_any_order() -> None:
    sessions = make_sessions()

    take_started(sessions, "middle", start=20, offset=1)
    take_started(sessions, "last", start=30, offset=2)
    signals = take_started(sessions, "first", start=10, offset=3)
    of_trace, of_session = signals[0], next(each for each in signals if each.scope == "session")

    assert (of_trace.traces, of_trace.started) == (None, "1970-01-01T00:00:10.000000Z")
    assert of_session.traces == SessionTraces(first="first", newest="last")
    assert of_session.started == "1970-01-01T00:00:10.000000Z"


def test_the_trace_that_began_a_session_is_still_named_when_it_has_left_the_window() -> None:
    sessions = open_sessions(rules(), max_traces=2)

    signals = [take_started(sessions, f"t{n}", start=n, offset=n)[-1] for n in range(1, 5)]

    assert signals[-1].traces == SessionTraces(first="t1", newest="t4")
    assert signals[-1].started == "1970-01-01T00:00:01.000000Z"


def test_a_revision_of_a_trace_keeps_the_start_that_was_published() -> None:
    sessions = make_sessions()
    take_started(sessions, "t", start=10, offset=1)

    revised, *_ = take_started(sessions, "t", start=11, offset=2, revision=1)
    again, *_ = take_started(sessions, "t", start=12, offset=3, revision=2)

    assert (revised.revision, again.revision) == (1, 2)
    assert revised.started == again.started == "1970-01-01T00:00:10.000000Z"


def test_a_verdict_replaces_a_stand_in_and_the_head_goes_first() -> None:
    sessions = make_sessions(judged=judged_rules(max_lag=2e9))
    key = session_key("bot", "a")
    record = make_record("t", session="a")
    stand_in = finished(sessions, "t", offset=4, stand_in=True)
    assert [each.outcome.evaluator for each in stand_in.publish if each.is_first] == [
        "loop_detection"
    ]

    (effects,) = sessions.on_verdict(verdict_of(record), key=key, offset=5, now=0.0)
    again = list(sessions.on_verdict(verdict_of(record), key=key, offset=6, now=0.0))

    assert published(effects.publish) == [
        ("trace", "confidence", True, True),
        ("session", "agent_reliability", False, False),
    ]
    head, turn = effects.changes
    assert isinstance(head, SessionHead)
    assert head.cause == 5
    assert isinstance(turn, SessionTurn)
    assert turn.due == ()
    assert again == []


def test_a_verdict_that_is_too_late_is_given_through_the_log() -> None:
    sessions = make_sessions(judged=judged_rules(max_lag=10.0))
    finished(sessions, "t", offset=4, stand_in=True)

    (effects,) = sessions.close_due(10.0)

    assert effects.publish == ()
    (verdict,) = effects.changes
    assert isinstance(verdict, VerdictRecord)
    assert [(each.state, each.reason) for each in verdict.outcomes] == [("skipped", "judge_lag")]
    assert list(sessions.close_due(11.0)) == []


def test_a_session_that_closes_drops_its_state_after_its_closed_head() -> None:
    sessions = make_sessions()
    take(sessions, "t1", session="a", offset=0)
    take(sessions, "t2", session="a", offset=1)

    (effects,) = sessions.close_all("shutdown")

    record, head, *dropped = effects.changes
    assert isinstance(record, SessionRecord)
    assert (record.closed, record.traces) == ("shutdown", (0, 1))
    assert isinstance(head, SessionHead)
    assert head.closed
    states = [each.state for each in dropped if isinstance(each, Tombstone)]
    assert [each.turn.trace_id for each in states if isinstance(each, SessionTurn)] == ["t1", "t2"]
    assert all(final and first for _, _, final, first in published(effects.publish))
