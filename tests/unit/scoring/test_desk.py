from __future__ import annotations

import msgspec
from msgspec.structs import replace

from collector.config.tree import SessionWindow
from collector.log.port import SESSIONS
from collector.records.session_key import session_key, turn_key
from collector.records.sessions import SessionHead, SessionsTopic
from collector.scoring.desk import Desk
from collector.scoring.effects import Effects, Task
from collector.scoring.judged import JudgedRules
from collector.scoring.turn import unscored_turn
from evaluators.model import Outcome
from tests.support.scoring_fakes import judged_rules, make_record, rules


def make_desk(*, max_open: int = 100, judged: JudgedRules | None = None) -> Desk:
    return Desk(partition=0, rules=rules(judged=judged), limits=SessionWindow(), max_open=max_open)


def make_head(session: str, *, offset: int, since: int = 0, closed: bool = False) -> SessionHead:
    return SessionHead(
        service="bot",
        session_id=session,
        session_source="session.id",
        agent="planner",
        agent_version=None,
        opened=0.0,
        last=0.0,
        offset=offset,
        since=since,
        closed=closed,
    )


def make_turn(session: str, trace_id: str, *, offset: int) -> SessionsTopic:
    record = make_record(trace_id, session=session)
    return unscored_turn(record, service="bot", session_id=session, offset=offset)


def take(desk: Desk, trace_id: str, *, session: str, offset: int) -> list[Effects]:
    key = session_key("bot", session)
    before = list(desk.clear_the_way(key, offset, 0.0))
    task = desk.take(make_record(trace_id, session=session), key=key, offset=offset, now=0.0)
    assert isinstance(task, Task)
    return [*before, desk.finish(task, (), ())]


def closed(effects: list[Effects]) -> list[bytes]:
    return [each.state[0].key for each in effects if each.closed is not None]


def test_turns_without_a_head_are_nobodys() -> None:
    desk = make_desk()

    tombstones = desk.restore([make_turn("a", "t1", offset=3)])

    assert [(each.topic, each.key, each.value) for each in tombstones] == [
        (SESSIONS, turn_key(session_key("bot", "a"), "t1"), None)
    ]
    assert len(desk) == 0


def test_turns_of_an_earlier_life_do_not_come_back() -> None:
    desk = make_desk()

    tombstones = desk.restore(
        [
            make_turn("a", "old", offset=3),
            make_turn("a", "new", offset=9),
            make_head("a", offset=9, since=5),
        ]
    )

    assert [each.key for each in tombstones] == [turn_key(session_key("bot", "a"), "old")]
    final = list(desk.close_all("idle"))
    value = final[0].state[0].value
    assert isinstance(value, bytes)
    assert msgspec.msgpack.decode(value)["traces"] == [9]


def test_a_closed_head_refuses_what_it_has_seen_until_the_commit_has_passed() -> None:
    desk = make_desk()
    desk.restore([make_head("a", offset=3, since=5, closed=True)])
    key = session_key("bot", "a")

    assert desk.take(make_record("t", session="a"), key=key, offset=4, now=0.0) == "repeated"
    assert desk.committed(4) == ()
    assert [each.key for each in desk.committed(5)] == [key]


def test_after_a_restart_the_oldest_touched_session_closes_first() -> None:
    desk = make_desk(max_open=2)
    desk.restore([make_head("b", offset=7), make_head("a", offset=2)])

    assert closed(take(desk, "t", session="c", offset=9)) == [session_key("bot", "a")]


def test_a_session_under_way_takes_no_second_record() -> None:
    desk = make_desk()
    key = session_key("bot", "a")
    task = desk.take(make_record("t1", session="a"), key=key, offset=0, now=0.0)
    assert isinstance(task, Task)

    assert not desk.accepts(key, 1, 0.0)
    assert desk.accepts(session_key("bot", "b"), 1, 0.0)
    assert not desk.accepts(session_key("bot", "b"), 1, 1e9)
    desk.finish(task, (), ())
    assert desk.accepts(key, 1, 0.0)


def test_a_session_with_a_stand_in_waits_for_its_verdict() -> None:
    desk = make_desk(judged=judged_rules(max_lag=2e9))
    key = session_key("bot", "a")
    task = desk.take(make_record("t1", session="a"), key=key, offset=0, now=0.0)
    assert isinstance(task, Task)
    stand_in = Outcome(
        evaluator="confidence", version="1", method="deterministic", state="scored", score=1.0
    )
    desk.finish(task, [replace(stand_in, final=False)], ())

    assert list(desk.close_due(1e9)) == []
    assert len(desk) == 1


def test_an_older_revision_than_the_one_held_is_passed_over() -> None:
    desk = make_desk()
    key = session_key("bot", "a")
    task = desk.take(make_record("t", session="a", revision=2), key=key, offset=0, now=0.0)
    assert isinstance(task, Task)
    desk.finish(task, (), ())

    older = make_record("t", session="a", revision=1)
    assert desk.take(older, key=key, offset=1, now=0.0) == "outdated"
