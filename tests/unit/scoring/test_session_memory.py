"""Open sessions are bounded in bytes (`windows.session.memory`): what they are charged is what they take."""

import base64
import gc
import random
import tracemalloc

import pytest
from msgspec.structs import replace

from collector.config.plan import plan_from
from collector.config.tree import Config, EmbedderConfig, SessionWindow
from collector.log.port import TRACES, Position, Record
from collector.records.codec import encode
from collector.records.sessions import SessionHead, SessionsTopic, SessionTurn, session_key
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_views import SummarisedTrace, decode_summarised
from collector.records.traces import TraceRecord, decode_traces
from collector.scoring.cached_session import AWAKE, CachedSession, Packer
from collector.scoring.effects import Effects, PlacedTrace, Tombstone
from collector.scoring.open_session import OpenSession
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.scoring.session_work import LONGEST
from evaluators.digest import trace_digest
from evaluators.model import ModelCall, Trace
from evaluators.run import SessionScorer, score_trace
from tests.support.scoring_fakes import (
    closed_in,
    judged_rules,
    make_record,
    rules,
    summarised,
    taken,
)
from tests.support.table import for_each

PLAN = plan_from(Config(embedder=EmbedderConfig(kind="none")))
RULES = Rules.of(PLAN, lambda: SessionScorer(PLAN))


def opened(memory: int = 1 << 30, *, partitions: int = 1, awake: int = AWAKE) -> OpenSessions:
    limits = SessionWindow(memory=memory)
    return OpenSessions(partition=0, rules=RULES, limits=limits, partitions=partitions, awake=awake)


def recorded(number: int, session: str, text: str) -> bytes:
    trace = Trace(
        trace_id=f"{number:032x}",
        service="bot",
        agent="bot",
        session_id=session,
        session_source="session.id",
        output=text,
        model_calls=(ModelCall(span_id="2" * 16, output=text),),
        start_time_unix_nano=number,
        digest=trace_digest([f"{number:016x}"]),
    )
    return encode(TraceRecord(trace=trace, spans=(), revision=0, seen=float(number)))


def read(value: bytes) -> SummarisedTrace:
    position = Position(TRACES, 0, 0)
    record = decode_summarised(
        Record(position=position, key=b"", value=value, time=0.0), RULES.summariser
    )
    assert isinstance(record, SummarisedTrace)
    trace = decode_traces(value)
    assert isinstance(trace, TraceRecord)
    return replace(record, outcomes=TraceOutcomes(score_trace(PLAN, trace.trace)))


def room(sessions: OpenSessions, value: bytes, *, offset: int) -> list[Effects]:
    record = read(value)
    key = session_key("bot", record.summary.session_id)
    return [*sessions.make_room(record, key=key, offset=offset, now=1.0)]


def take(sessions: OpenSessions, value: bytes, *, offset: int) -> list[Effects]:
    effects = room(sessions, value, offset=offset)
    return [*effects, taken(sessions, read(value), offset=offset, now=1.0)]


def noise(number: int, size: int) -> str:
    """A text that no compression makes much smaller."""
    return base64.b64encode(random.Random(number).randbytes(size * 3 // 4)).decode()


@pytest.mark.heavy
@pytest.mark.parametrize(("turns", "size"), [(1, 0), (6, 0), (12, 3000), (LONGEST + 1, 0)])
def test_the_charge_is_what_tracemalloc_measures(turns: int, size: int) -> None:
    count = 100 if turns <= LONGEST else 4
    values = [recorded(n, f"s{n % count}", noise(n, size)) for n in range(count * turns)]
    sessions = opened(awake=0)
    tracemalloc.start()
    try:
        for number in range(100):  # what is remembered of any trace is full then
            take(sessions, recorded(10**6 + number, f"warm{number}", ""), offset=number)
        sessions.committed(0)
        gc.collect()
        before, charged = tracemalloc.get_traced_memory()[0], sessions.size
        for offset, value in enumerate(values, 100):
            take(sessions, value, offset=offset)
        sessions.committed(0)
        gc.collect()
        measured = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert 0.8 * measured <= sessions.size - charged <= 2 * measured


def room_for(count: int) -> int:
    """Bytes for so many sessions of one long text each, and a half."""
    sessions = opened()
    take(sessions, recorded(0, "a", "x"), offset=0)
    return sessions.size * (2 * count + 1) // 2


def test_when_memory_is_short_the_sessions_that_were_quiet_longest_close() -> None:
    sessions = opened(room_for(2))
    effects: list[Effects] = []

    for offset, session in enumerate("abcadefb"):
        effects += take(sessions, recorded(offset, session, "x"), offset=offset)

    assert closed_in(effects) == ["b", "c", "a", "d"]
    assert {each.closed for each in effects if each.closed} == {("bot", "memory")}


@for_each("memory,partitions", [(1, 1), (4_000, 5)])
def test_a_session_is_not_closed_for_its_own_trace_and_partitions_share_the_memory(
    memory: int, partitions: int
) -> None:
    sessions = opened(memory, partitions=partitions)

    for offset in range(5):
        assert closed_in(take(sessions, recorded(offset, "a", ""), offset=offset)) == []
    assert closed_in(take(sessions, recorded(9, "b", ""), offset=9)) == ["a"]


def test_a_restart_charges_the_same() -> None:
    sessions = opened()
    state: dict[object, SessionsTopic] = {}
    for offset in range(30):
        for effects in take(sessions, recorded(offset, f"s{offset % 3}", "x" * 999), offset=offset):
            for change in effects.changes:
                assert isinstance(change, SessionHead | SessionTurn)
                trace_id = change.turn.trace_id if isinstance(change, SessionTurn) else None
                state[change.session_id, trace_id] = change

    again = opened()
    changes = again.restore(state.values())

    assert not any(isinstance(each, Tombstone) for each in changes)
    assert (again.size, len(again)) == (sessions.size, 3)
    for each in (sessions, again):
        assert len([*each.close_all("idle")]) == 3
        assert each.size == 0


# --- a packed session takes little, answers what timers and bounds ask, and is itself again when it is woken ----------


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


def test_who_fits_stays_awake_and_the_least_recently_used_are_packed() -> None:
    sessions = opened(awake=1 << 40)
    scored(sessions, *"abca")
    again = opened(awake=sessions._awake._size)
    scored(again, *"abca")
    assert packed(again) == []

    scored(again, "d", first=9)
    assert packed(again) == ["b"]


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
