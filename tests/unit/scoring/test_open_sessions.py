"""What a trace does to its session, and what is published of both."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as amended

from collector.records.sessions import SessionHead, SessionTurn, session_key
from collector.records.signal import SessionTraces, Signal
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import (
    RunawayRecord,
    SessionRecord,
    TraceRecord,
    VerdictRecord,
    WorkRecord,
)
from collector.scoring.effects import Effects, PlacedTrace, Publication, Tombstone
from collector.scoring.open_sessions import PLUGIN_LAG, OpenSessions
from collector.scoring.rules import JudgedRules, Rules
from collector.scoring.session_end import unscored_turn
from evaluators.model import ModelCall, ToolCall
from evaluators.plan import make_plan
from evaluators.run import SessionScorer, score_trace
from tests.support.evaluating import OURS, a_trace
from tests.support.scoring_fakes import (
    HEAD,
    closed_in,
    judged_rules,
    make_record,
    open_sessions,
    rules,
    summarised,
    taken,
    verdict_of,
)
from tests.support.table import for_each


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


def test_a_session_closes_before_its_own_record_that_came_too_late() -> None:
    sessions = open_sessions(rules())
    take(sessions, "t1", session="a", offset=0)

    record = summarised(make_record("t2", session="a"))
    effects = sessions.make_room(record, key=session_key("bot", "a"), offset=5, now=1e9)

    assert closed_in(effects) == ["a"]
    task = tried(sessions, "t2", offset=5, now=1e9)
    assert isinstance(task, PlacedTrace)
    assert task.is_new


# --- what comes back after a restart ----------------------------------------------------------------------------------


def turn(session: str, trace_id: str, *, offset: int) -> SessionTurn:
    record = summarised(make_record(trace_id, session=session))
    return unscored_turn(record, service="bot", session_id=session, offset=offset)


def test_turns_without_a_head_or_of_an_earlier_life_leave_only_tombstones() -> None:
    sessions = open_sessions(rules())
    gone = [turn("a", "old", offset=3), turn("b", "t1", offset=3)]
    head = amended(HEAD, session_id="a", offset=9, since=5)

    changes = sessions.restore([*gone, turn("a", "new", offset=9), head])

    assert changes == tuple(Tombstone(state=each) for each in gone)
    (final,) = sessions.close_all("idle")
    assert [each.traces for each in final.changes if isinstance(each, SessionRecord)] == [(9,)]


def test_a_closed_head_refuses_records_before_it_until_the_commit_has_passed() -> None:
    sessions = open_sessions(rules())
    head = amended(HEAD, session_id="a", offset=3, since=5, closed=True)
    sessions.restore([head])

    assert tried(sessions, "t", offset=4) == "repeated"
    assert sessions.committed(4) == ()
    assert sessions.committed(5) == (Tombstone(state=head),)


def test_the_oldest_touched_session_closes_first() -> None:
    sessions = open_sessions(rules(), max_open=2)
    sessions.restore(
        [amended(HEAD, session_id=name, offset=at) for name, at in (("b", 7), ("a", 2))]
    )

    assert closed_in(take(sessions, "t", session="c", offset=9)) == ["a"]


def test_a_record_that_was_passed_is_no_repeat_of_a_session_that_closed_since() -> None:
    """Session `b` was at offset 7 when the record at offset 3 closes it: what it has seen is a repeat, nothing else."""
    sessions = open_sessions(rules(), max_open=1)
    take(sessions, "t1", session="b", offset=7)

    assert closed_in(take(sessions, "t2", session="c", offset=3)) == ["b"]

    assert tried(sessions, "t1", session="b", offset=7) == "repeated"
    assert isinstance(tried(sessions, "t3", session="b", offset=8), PlacedTrace)


# --- waiting for verdicts ---------------------------------------------------------------------------------------------


(JUDGED,) = judged_rules().trace
THEIRS = replace(JUDGED, spec=replace(JUDGED.spec, name="acme/confidence", method="custom"))


@pytest.mark.parametrize(
    ("ours_are_due", "closes_at"), [(False, [PLUGIN_LAG]), (True, [])], ids=["theirs", "both"]
)
def test_a_session_waits_a_moment_for_what_third_parties_say_and_long_for_a_judge(
    *, ours_are_due: bool, closes_at: list[float]
) -> None:
    awaited = JudgedRules(trace=(JUDGED,) if ours_are_due else (), plugins=(THEIRS,), max_lag=2e9)
    sessions = open_sessions(rules(awaited))
    finished(sessions, "t1", offset=0, stand_in=True)

    found = {after: list(sessions.close_due(1e9 + after)) for after in (0.0, 14.0, PLUGIN_LAG)}

    assert [after for after, effects in found.items() if closed_in(effects)] == closes_at
    told = [each for effects in found.values() for one in effects for each in one.publish]
    about = [each.outcome.reason for each in told if each.outcome.evaluator == THEIRS.spec.name]
    assert about == ["judge_lag"] * len(closes_at)


def test_a_trace_of_a_session_that_waits_for_third_parties_begins_that_wait_anew() -> None:
    sessions = open_sessions(rules(JudgedRules(plugins=(THEIRS,), max_lag=2e9)))
    take(sessions, "t1", session="a", offset=0)
    assert list(sessions.close_due(1e9)) == []
    take(sessions, "t2", session="a", offset=1)

    assert not closed_in(list(sessions.close_due(1e9 + PLUGIN_LAG)))
    assert closed_in(list(sessions.close_due(1e9 + 2 * PLUGIN_LAG))) == ["a"]


def test_a_revision_older_than_the_one_in_the_window_is_not_scored() -> None:
    sessions = open_sessions(rules())
    finished(sessions, "t", offset=0, revision=2)

    assert tried(sessions, "t", offset=1, revision=1) == "outdated"


def published(publish: tuple[Publication, ...]) -> list[tuple[str, str, bool, bool]]:
    """(scope, evaluator, final, whether it is the first final one) of each signal."""
    return [
        (each.signal.scope, each.signal.evaluator, each.signal.final, each.is_first)
        for each in publish
    ]


def test_a_trace_gives_signals_and_its_head_last() -> None:
    sessions = open_sessions(rules())

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
    """Also when the first one has left the window."""
    sessions = open_sessions(rules(), max_traces=2)

    take_started(sessions, "middle", start=20, offset=1)
    take_started(sessions, "first", start=10, offset=2)
    of_trace, *_, of_session = take_started(sessions, "last", start=30, offset=3)

    assert (of_trace.traces, of_trace.started) == (None, "1970-01-01T00:00:30.000000Z")
    assert of_session.traces == SessionTraces(first="first", newest="last")
    assert of_session.started == "1970-01-01T00:00:10.000000Z"


def test_a_revision_of_a_trace_keeps_the_start_that_was_published() -> None:
    sessions = open_sessions(rules())
    take_started(sessions, "t", start=10, offset=1)

    revised, *_ = take_started(sessions, "t", start=11, offset=2, revision=1)
    again, *_ = take_started(sessions, "t", start=12, offset=3, revision=2)

    assert (revised.revision, again.revision) == (1, 2)
    assert revised.started == again.started == "1970-01-01T00:00:10.000000Z"


def test_a_verdict_replaces_a_stand_in_and_the_head_goes_first() -> None:
    sessions = open_sessions(rules(judged_rules(max_lag=2e9)))
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
    sessions = open_sessions(rules(judged_rules(max_lag=10.0)))
    finished(sessions, "t", offset=4, stand_in=True)

    (effects,) = sessions.close_due(10.0)

    assert effects.publish == ()
    (verdict,) = effects.changes
    assert isinstance(verdict, VerdictRecord)
    assert [(each.state, each.reason) for each in verdict.outcomes] == [("skipped", "judge_lag")]
    assert list(sessions.close_due(11.0)) == []


# --- a trace that is only a piece of another one's turn ---------------------------------------------------------------


KEY = session_key("bot", "s")


def piece(trace_id: str, **fields: Any) -> SummarisedTrace:
    record = make_record(trace_id, turn=False, **fields)
    return summarised(amended(record, trace=replace(record.trace, is_part=True)))


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


def test_a_piece_that_becomes_or_comes_again_as_a_turn_is_scored_for_the_first_time() -> None:
    """Its spans came again, with the parent that they lacked, after it was forgotten: all else is equal."""
    record = make_record("t")
    part = summarised(amended(record, trace=replace(record.trace, is_part=True)))

    for turn in (summarised(record), summarised(make_record("t", revision=1))):
        sessions = open_sessions(rules())
        taken(sessions, part, offset=0)
        effects = taken(sessions, turn, offset=1)

        firsts = [each.is_first for each in effects.publish if each.signal.scope == "trace"]
        assert firsts == [True, True]
        assert sessions.take(turn, key=KEY, offset=3, now=0.0) == "repeated"


# --- runaway is published here, but where the model calls of other traces decide it -----------------------------------


PLAN = make_plan(OURS, {}, embedder=None, only=["runaway"])
RULES = Rules.of(PLAN, lambda: SessionScorer(PLAN))


def calling(models: int, *, tools: int = 2, revision: int = 0) -> Effects:
    """The effects of a trace with so many model calls and so many calls of one tool."""
    call = ToolCall(name="search", arguments={}, result="none")
    trace = a_trace(
        trace_id="1" * 32,
        digest=f"{models}-{tools}",
        models=("gpt-4o",),
        model_calls=tuple(ModelCall(span_id=f"m{n}") for n in range(models)),
        tool_calls=tuple(amended(call, span_id=f"{n:016x}") for n in range(tools)),
    )
    record = TraceRecord(trace=trace, spans=(), revision=revision, seen=100.0)
    read = amended(summarised(record), outcomes=TraceOutcomes(score_trace(PLAN, trace)))
    return taken(open_sessions(RULES), read, offset=0, now=100.0)


@for_each("models,tools", [(19, 2), (1, 0), (40, 11)])
def test_what_other_traces_do_not_decide_is_published_here(models: int, tools: int) -> None:
    effects = calling(models, tools=tools)

    assert published(effects.publish) == [("trace", "runaway", True, True)]
    (work,) = effects.work
    assert isinstance(work, WorkRecord)
    assert work.trace is not None
    assert (work.trace.trace_id, work.trace.model) == ("1" * 32, "gpt-4o")
    assert work.trace.model_calls == models


@for_each("tools", [0, 2])
def test_twenty_model_calls_are_decided_where_the_usual_is_known(tools: int) -> None:
    effects, again = calling(20, tools=tools), calling(20, tools=tools, revision=1)

    (record,), (revised,) = (
        [each for each in of.work if isinstance(each, RunawayRecord)] for of in (effects, again)
    )
    assert effects.publish == ()
    assert (record.model, record.model_calls, record.digest) == ("gpt-4o", 20, f"20-{tools}")
    assert (record.subject.closed, record.outcome.final) == ("root_ended", True)
    assert (record.is_first, revised.is_first) == (True, False)
