"""A packed session takes little, answers what timers and bounds ask, and is itself again when it is woken."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from msgspec.structs import replace

from collector.config.tree import SessionWindow
from collector.records.sessions import turn_key
from collector.scoring.effects import Change, change_record
from collector.scoring.held_session import HeldSession, Packer
from collector.scoring.open_session import OpenSession
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.session_cost import LONGEST
from tests.support.scoring_fakes import judged_rules, rules
from tests.unit.scoring.test_session_memory import RULES, recorded, take

LIMITS = SessionWindow()
PACKER = Packer(RULES, LIMITS)


def opened(awake: int) -> OpenSessions:
    return OpenSessions(partition=0, rules=RULES, limits=LIMITS, awake=awake)


def scored(sessions: OpenSessions, *names: str, text: str = "", first: int = 0) -> None:
    for offset, name in enumerate(names, first):
        take(sessions, recorded(offset, name, f"{offset} {text}"), offset=offset)
        sessions.committed(0)


def held(sessions: OpenSessions) -> dict[bytes, HeldSession]:
    return {each.key: each for each in sessions._open.values()}


def packed(sessions: OpenSessions) -> list[str]:
    return [each.key.decode()[-1] for each in sessions._open.values() if each.is_packed]


def content(session: OpenSession) -> object:
    return session.head, session.traces, [*session.pending.items()], session.seen


def test_a_woken_session_is_the_one_that_was_packed() -> None:
    judged = judged_rules()
    packer = Packer(rules(judged), LIMITS)
    sessions = opened(1 << 40)
    scored(sessions, *"aaa", text="What a session says, é.")
    session = next(iter(held(sessions).values())).wake(PACKER)
    due = tuple(each.spec.name for each in judged.trace)
    last, first, between = (replace(session.traces[n], due=due) for n in (2, 0, 1))
    session = packer.session(session.key, session.head, (last, first, replace(between, due=())))
    session.seen = 77
    one = HeldSession(session)
    asked = (one.last, one.offset, one.since, one.cost, one.waits)
    before = content(session)
    assert [*session.pending] == [last.turn.trace_id, first.turn.trace_id]

    one.pack(packer)

    assert one.is_packed
    assert (one.last, one.offset, one.since, one.cost, one.waits) == asked
    assert content(one.wake(packer)) == before
    assert one.wake(packer) is not session


def test_the_least_recently_used_are_packed() -> None:
    sessions = opened(1 << 40)
    scored(sessions, *"abcab")
    again = opened(sessions._awake._size * 3 // 4)
    scored(again, *"abcab")

    assert packed(again) == ["c"]


def test_a_session_that_is_woken_while_awake_was_used() -> None:
    sessions = opened(1 << 40)
    scored(sessions, *"abc")

    sessions.wake(b"bot\0a")

    assert [key[-1:] for key in sessions._awake._held] == [b"b", b"c", b"a"]


def test_who_fits_stays_awake() -> None:
    sessions = opened(1 << 40)
    scored(sessions, *"abc")
    again = opened(sessions._awake._size)
    scored(again, *"abc")

    assert packed(again) == []
    scored(again, "d", first=9)
    assert packed(again) == ["a"]


def test_a_session_that_is_scored_is_not_packed() -> None:
    sessions = opened(0)
    scored(sessions, "a")
    sessions._in_flight.add(b"bot\0a")
    sessions.wake(b"bot\0a")
    scored(sessions, *"bc", first=1)

    assert packed(sessions) == ["b", "c"]


def test_what_is_not_written_yet_is_not_packed() -> None:
    sessions = opened(0)
    for offset, name in enumerate("ab"):
        take(sessions, recorded(offset, name, ""), offset=offset)
    assert packed(sessions) == []

    sessions.committed(0)
    assert packed(sessions) == ["a", "b"]


def test_a_long_session_is_not_packed() -> None:
    sessions = opened(0)
    scored(sessions, *("a" * (LONGEST + 1)), *("b" * LONGEST), "c")

    assert packed(sessions) == ["b", "c"]


def test_a_closed_session_makes_room() -> None:
    sessions = opened(1 << 40)
    scored(sessions, *"abc")
    assert sessions._awake._size > sessions.size

    assert len([*sessions.close_all("idle")]) == 3
    assert sessions._awake._size == 0


def test_a_restart_wakes_no_more_than_fit() -> None:
    sessions = opened(1 << 40)
    scored(sessions, *"abcd")
    each = [one.wake(PACKER) for one in held(sessions).values()]
    again = opened(2 * each[0].awake_cost)

    again.restore([state for one in each for state in (one.head, *one.traces)])

    assert packed(again) == ["a", "b"]


class Stored:
    """The records of `sessions` by key."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes | None] = {}
        self.lost = 0

    def write(self, *changes: Change) -> None:
        for each in changes:
            record = change_record(each, 0)
            assert not callable(record.value)
            self.records[record.key] = record.value

    def lose(self) -> None:
        self.lost += 1

    def packer(self) -> Packer:
        return Packer(RULES, LIMITS, read_back=self.records.get, lost=self.lose)


def with_texts_in_the_log(stored: Stored) -> OpenSessions:
    """A session of three traces that is packed: texts of 8 KB each, which are nowhere but in the log."""
    sessions = OpenSessions(
        partition=0, rules=RULES, limits=LIMITS, packer=stored.packer(), awake=0
    )
    for offset in range(3):
        for effects in take(
            sessions, recorded(offset, "a", f"{offset} " + "é" * 3000), offset=offset
        ):
            stored.write(*effects.changes)
    sessions.committed(0)
    (one,) = held(sessions).values()
    assert one.is_packed
    return sessions


def test_texts_are_read_back_from_the_log() -> None:
    stored = Stored()
    sessions = with_texts_in_the_log(stored)
    (one,) = held(sessions).values()
    (looked_at,) = {each.turn.output for each in one.look(stored.packer()).traces}
    assert looked_at is None
    assert one.is_packed

    sessions.wake(b"bot\0a")

    texts = [each.turn.output or "" for each in one.wake(stored.packer()).traces]
    assert [each[:3] for each in texts] == ["0 é", "1 é", "2 é"]
    assert [change_record(each, 0).value for each in one.wake(stored.packer()).traces] == [
        *stored.records.values()
    ][:1] + [*stored.records.values()][2:]
    assert stored.lost == 0


@pytest.mark.parametrize("instead", [None, b"damaged", b"other"])
def test_texts_that_the_log_has_not_are_counted_and_looked_for_in_the_trace(
    instead: bytes | None,
) -> None:
    stored = Stored()
    sessions = with_texts_in_the_log(stored)
    (one,) = held(sessions).values()
    first, second, _ = (turn_key(b"bot\0a", f"{n:032x}") for n in range(3))
    stored.records[second] = stored.records[first] if instead == b"other" else instead

    sessions.wake(b"bot\0a")

    kept = [(each.kept, each.turn.output is None) for each in one.wake(stored.packer()).traces]
    assert kept == [(True, False), (False, True), (True, False)]
    assert stored.lost == 1


def test_a_session_closes_without_its_texts() -> None:
    stored = Stored()
    sessions = with_texts_in_the_log(stored)
    stored.records.clear()

    assert [each.closed for each in sessions.close_all("idle")] == [("bot", "idle")]
    assert stored.lost == 0


def test_a_packed_session_takes_a_fifth() -> None:
    count, turns, text = 40, 5, "What is said in a session of a real agent, in words. " * 12
    taken: list[float] = []
    for awake in (1 << 40, 0):
        sessions = opened(awake)
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
