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
from collector.scoring.cached_session import AWAKE
from collector.scoring.effects import Effects, Tombstone
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.scoring.session_work import LONGEST
from evaluators.digest import trace_digest
from evaluators.model import ModelCall, Trace
from evaluators.run import SessionScorer, score_trace
from tests.support.scoring_fakes import closed_in, taken

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


def test_a_session_is_not_closed_for_its_own_trace() -> None:
    sessions = opened(1)

    for offset in range(5):
        assert closed_in(take(sessions, recorded(offset, "a", ""), offset=offset)) == []
    assert closed_in(take(sessions, recorded(9, "b", ""), offset=9)) == ["a"]


def test_partitions_share_the_memory() -> None:
    sessions = opened(4_000, partitions=5)

    take(sessions, recorded(1, "a", ""), offset=1)

    assert closed_in(take(sessions, recorded(2, "b", ""), offset=2)) == ["a"]


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


def test_a_crash_between_a_trace_and_its_head_closes_no_session_too_early() -> None:
    """The trace is charged when it is placed again; its session's head says what was charged before."""
    sessions = opened()
    state = [
        change
        for offset, session in enumerate("ab")
        for effects in take(sessions, recorded(offset, session, ""), offset=offset)
        for change in effects.changes
    ]
    full = sessions.size
    (effects,) = take(sessions, recorded(2, "b", ""), offset=2)
    state += [each for each in effects.changes if isinstance(each, SessionTurn)]

    again = opened(full)
    again.restore([each for each in state if isinstance(each, SessionHead | SessionTurn)])

    assert closed_in(room(again, recorded(2, "b", ""), offset=2)) == []
    assert again.size == full


def test_a_repeat_that_is_read_again_after_a_crash_closes_no_session() -> None:
    """When it was read first, the sessions after it were not there yet."""
    sessions = opened()
    state = [
        change
        for offset, session in ((0, "a"), (2, "b"))
        for effects in take(sessions, recorded(offset, session, ""), offset=offset)
        for change in effects.changes
    ]
    again = opened(sessions.size - 1)
    again.restore([each for each in state if isinstance(each, SessionHead | SessionTurn)])

    assert closed_in(room(again, recorded(0, "a", ""), offset=1)) == []
    assert closed_in(room(again, recorded(3, "a", ""), offset=3)) == ["b"]
