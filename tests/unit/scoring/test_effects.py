"""Where the values that scoring decides become bytes."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from collector.log.port import SESSIONS, SIGNALS, TRACES
from collector.records.sessions import SessionAwaited, SessionHead, decode_sessions, session_key
from collector.records.signal import FIRST, Signal, encode_signal, start_in
from collector.records.traces import RunRecord, SessionRecord, decode_traces
from collector.scoring.effects import Change, Drop, Effects, Publication, WriteBatch
from collector.scoring.unscored_turn import unscored_turn
from tests.support.scoring_fakes import make_record, verdict_of

KEY = session_key("bot", "s")
HEAD = SessionHead(
    service="bot",
    session_id="s",
    session_source="session.id",
    agent="planner",
    agent_version=None,
    opened=0.0,
    last=0.0,
)
TURN = unscored_turn(make_record("t1"), service="bot", session_id="s", offset=0)
AWAITED = SessionAwaited(
    service="bot",
    session_id="s",
    session_source="session.id",
    agent="planner",
    agent_version=None,
    seen=1.0,
    closed="idle",
    closed_at=2.0,
    digest="d",
    due=("tone",),
)
SIGNAL = Signal(
    id="0" * 32,
    time="1970-01-01T00:00:00.000000Z",
    scope="session",
    service="bot",
    agent="planner",
    session_id="s",
    session_source="session.id",
    evaluator="tone",
    evaluator_version="1",
    method="llm_judge",
    outcome="scored",
    score=0.5,
    explanation="a secret",
    metadata={"text": "a secret", "n": 1},
)


def batch_of(
    *changes: Change, publish: tuple[Publication, ...] = (), redact: bool = False
) -> WriteBatch:
    batch = WriteBatch(redact=redact)
    batch.add(Effects(publish=publish, changes=changes), partition=3)
    return batch


def test_state_goes_to_its_partition_of_sessions_under_its_own_key() -> None:
    records = batch_of(HEAD, TURN, AWAITED).records

    assert [(each.topic, each.key, each.partition) for each in records] == [
        (SESSIONS, KEY, 3),
        (SESSIONS, KEY + b"\0t1", 3),
        (SESSIONS, KEY + b"\0awaited\0d", 3),
    ]
    values = [each.value for each in records if isinstance(each.value, bytes)]
    assert [decode_sessions(each) for each in values] == [HEAD, TURN, AWAITED]


def test_a_drop_is_the_tombstone_of_the_same_key() -> None:
    states = (HEAD, TURN, AWAITED)

    put = batch_of(*states).records
    dropped = batch_of(*(Drop(state=each) for each in states)).records

    assert [each.key for each in dropped] == [each.key for each in put]
    assert [(each.topic, each.value) for each in dropped] == [(SESSIONS, None)] * 3


def test_a_batch_is_large_by_its_bytes_too() -> None:
    text = "x" * 60_000
    large = replace(SIGNAL, explanation=text)
    publish = Publication(signal=large, is_first=True)

    batch = batch_of(publish=(publish,) * 100)
    assert not batch.is_large
    batch.add(Effects(publish=(publish,) * 50), partition=3)
    assert batch.is_large

    batch.clear()
    assert not batch.is_large


def test_reports_go_to_the_session_s_partition_of_traces() -> None:
    reports = (
        SessionRecord(service="bot", session_id="s", closed="idle", traces=(1, 2)),
        RunRecord(service="bot", session_id="s", agent="a", task_id="t", success=None, ended=1.0),
        verdict_of(make_record("t1")),
    )

    records = batch_of(*reports).records

    assert {(each.topic, each.key, each.partition) for each in records} == {(TRACES, KEY, 3)}
    values = [each.value for each in records if isinstance(each.value, bytes)]
    assert [decode_traces(each) for each in values] == [*reports]


def test_a_signal_is_keyed_by_its_session_and_marked_when_it_is_the_first() -> None:
    publish = tuple(Publication(signal=SIGNAL, is_first=first) for first in (True, False))

    first, later = batch_of(publish=publish).records

    assert (first.topic, first.key, first.partition) == (SIGNALS, b"s", None)
    assert first.value == later.value == encode_signal(SIGNAL)
    assert FIRST in first.headers
    assert FIRST not in later.headers


def test_the_start_of_a_scored_trace_travels_with_its_signal() -> None:
    started = Publication(signal=SIGNAL, is_first=True, start=1_700_000_000_000_000_001)

    known, unknown = batch_of(publish=(started, replace(started, start=0))).records

    assert start_in(known.headers) == 1_700_000_000_000_000_001
    assert start_in(unknown.headers) == 0


def test_redaction_removes_texts_and_keeps_the_id() -> None:
    publish = (Publication(signal=SIGNAL, is_first=True),)

    (record,) = batch_of(publish=publish, redact=True).records

    assert isinstance(record.value, bytes)
    shown = msgspec.json.decode(record.value)
    assert b"secret" not in record.value
    assert (shown["id"], shown["metadata"]) == (SIGNAL.id, {"text": None, "n": 1})


def test_signals_come_before_all_state_of_the_batch() -> None:
    batch = batch_of(HEAD)
    publish = (Publication(signal=SIGNAL, is_first=True),)
    batch.add(Effects(publish=publish, changes=(TURN,)), partition=3)

    assert [each.topic for each in batch.records] == [SIGNALS, SESSIONS, SESSIONS]


def test_state_of_a_partition_that_was_revoked_is_not_written() -> None:
    publish = (Publication(signal=SIGNAL, is_first=True),)
    batch = batch_of(HEAD, publish=publish)
    batch.add_changes((TURN,), partition=4)

    batch.forget(3)

    assert [(each.topic, each.partition) for each in batch.records] == [
        (SIGNALS, None),
        (SESSIONS, 4),
    ]
