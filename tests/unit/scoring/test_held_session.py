"""A packed session takes little, answers what timers and bounds ask, and is itself again when it is woken."""

import gc
import tracemalloc

import pytest
from msgspec.structs import replace

from collector.config.tree import SessionWindow
from collector.records.sessions import session_key
from collector.scoring.cached_session import CachedSession, Packer
from collector.scoring.effects import PlacedTrace
from collector.scoring.open_session import OpenSession
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.session_work import LONGEST
from tests.support.scoring_fakes import judged_rules, make_record, rules, summarised
from tests.unit.scoring.test_session_memory import RULES, opened, recorded, take

LIMITS = SessionWindow()
PACKER = Packer(RULES, LIMITS)


def scored(sessions: OpenSessions, *names: str, text: str = "", first: int = 0) -> None:
    for offset, name in enumerate(names, first):
        take(sessions, recorded(offset, name, f"{offset} {text}"), offset=offset)
        sessions.committed(0)


def held(sessions: OpenSessions) -> dict[bytes, CachedSession]:
    return {each.key: each for each in sessions._open.values()}


def packed(sessions: OpenSessions) -> list[str]:
    return [
        each.key.decode()[-1] for each in sessions._open.values() if isinstance(each._held, bytes)
    ]


def content(session: OpenSession) -> object:
    return session.head, session.traces, [*session.pending.items()], session.seen


def test_a_woken_session_is_the_one_that_was_packed() -> None:
    judged = judged_rules()
    packer = Packer(rules(judged), LIMITS)
    sessions = opened(awake=1 << 40)
    scored(sessions, *"aaa", text="What a session says, é.")
    session = next(iter(held(sessions).values())).wake(PACKER)
    due = tuple(each.spec.name for each in judged.trace)
    last, first, between = (replace(session.traces[n], due=due) for n in (2, 0, 1))
    session = packer.session(session.key, session.head, (last, first, replace(between, due=())))
    session.seen = 77
    one = CachedSession(session)
    asked = (one.last, one.since, one.cost, one.waits)
    before = content(session)
    assert [*session.pending] == [last.turn.trace_id, first.turn.trace_id]

    one.pack(packer)

    assert isinstance(one._held, bytes)
    assert (one.last, one.since, one.cost, one.waits) == asked
    assert content(one.wake(packer)) == before
    assert one.wake(packer) is not session


def test_the_least_recently_used_are_packed() -> None:
    sessions = opened(awake=1 << 40)
    scored(sessions, *"abcab")
    again = opened(awake=sessions._awake._size * 3 // 4)
    scored(again, *"abcab")

    assert packed(again) == ["c"]


def test_a_session_that_is_woken_while_awake_was_used() -> None:
    sessions = opened(awake=1 << 40)
    scored(sessions, *"abc")

    sessions._awake.wake(held(sessions)[b"bot\0a"])

    assert [key[-1:] for key in sessions._awake._held] == [b"b", b"c", b"a"]


def test_who_fits_stays_awake() -> None:
    sessions = opened(awake=1 << 40)
    scored(sessions, *"abc")
    again = opened(awake=sessions._awake._size)
    scored(again, *"abc")

    assert packed(again) == []
    scored(again, "d", first=9)
    assert packed(again) == ["a"]


def test_a_long_session_is_not_packed() -> None:
    sessions = opened(awake=0)
    scored(sessions, *("a" * (LONGEST + 1)), *("b" * LONGEST), "c")

    assert packed(sessions) == ["b"], "the last one was used just now"


def test_a_closed_session_makes_room() -> None:
    sessions = opened(awake=1 << 40)
    scored(sessions, *"abc")
    assert sessions._awake._size > sessions.size

    assert len([*sessions.close_all("idle")]) == 3
    assert sessions._awake._size == 0


def test_a_restart_wakes_no_more_than_fit() -> None:
    sessions = opened(awake=1 << 40)
    scored(sessions, *"abcd")
    each = [one.wake(PACKER) for one in held(sessions).values()]
    again = opened(awake=2 * each[0].awake_cost)

    again.restore([state for one in each for state in (one.head, *one.traces)])

    assert packed(again) == ["a", "b"]


def test_a_packed_session_takes_a_fifth() -> None:
    count, turns, text = 40, 5, "What is said in a session of a real agent, in words. " * 12
    taken: list[float] = []
    for awake in (1 << 40, 0):
        sessions = opened(awake=awake)
        scored(sessions, "warm")
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            scored(sessions, *(str(n) for n in range(count) for _ in range(turns)), text=text)
            gc.collect()
            taken.append((tracemalloc.get_traced_memory()[0] - before) / count)
        finally:
            tracemalloc.stop()

    assert taken[1] < taken[0] / 5, taken


@pytest.mark.parametrize("keeps", [True, False])
def test_sketches_are_packed_where_the_log_takes_long_to_read_them(*, keeps: bool) -> None:
    packer = Packer(rules(), LIMITS, keeps_sketches=keeps)
    sessions = OpenSessions(partition=0, rules=rules(), limits=LIMITS, packer=packer, awake=0)
    lacking: list[list[str]] = []
    for offset in range(7):
        for name in "ab":  # each packs the other one
            record = summarised(make_record(f"{name}{offset}", start=offset, session=name))
            placed = sessions.take(record, key=session_key("bot", name), offset=offset, now=0.0)
            assert isinstance(placed, PlacedTrace)
            sessions.finish(placed, {})
            lacking.append([each.turn.trace_id for each in placed.lacking])

    assert packed(sessions) == ["a"]
    assert lacking[-1] == ([] if keeps else ["b3", "b4", "b5"])
    (one,) = (each for each in held(sessions).values() if isinstance(each._held, bytes))
    found = one.look(packer).sketches.kept
    assert [*found] == (["a3", "a4", "a5", "a6"] if keeps else [])
