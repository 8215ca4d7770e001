"""Where the values that scoring decides become bytes."""

import msgspec
from msgspec.structs import replace

from collector.log.port import SESSIONS, SIGNALS, TRACES, Position, Record
from collector.records.cloud_events import FIRST, start_in
from collector.records.sessions import SessionAwaited, decode_sessions, session_key
from collector.records.signal import encode_signal
from collector.records.signal_batch import signals_in
from collector.records.traces import RunRecord, SessionRecord, decode_traces
from collector.scoring.effects import Change, Effects, Publication, Tombstone, WriteBatch
from collector.scoring.session_end import unscored_turn
from evaluators.model import Outcome
from tests.support.scoring_fakes import CLOSED, HEAD, make_record, summarised, verdict_of

KEY = session_key("bot", "s")
TURN = unscored_turn(summarised(make_record("t1")), service="bot", session_id="s", offset=0)
AWAITED = SessionAwaited(subject=CLOSED, closed_at=2.0, digest="d", due=("tone",))
OUTCOME = Outcome(
    evaluator="tone",
    version="1",
    method="llm_judge",
    state="scored",
    score=0.5,
    explanation="a secret",
    metadata={"text": "a secret", "n": 1},
)
FIRST_SIGNAL = Publication(subject=CLOSED, outcome=OUTCOME, id="0" * 32, is_first=True)
SIGNAL = FIRST_SIGNAL.signal


def batch_of(
    *changes: Change,
    publish: tuple[Publication, ...] = (),
    redact: bool = False,
    joined: bool = False,
) -> WriteBatch:
    batch = WriteBatch(joined=joined, redact=redact)
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
    dropped = batch_of(*(Tombstone(state=each) for each in states)).records

    assert [each.key for each in dropped] == [each.key for each in put]
    assert [(each.topic, each.value) for each in dropped] == [(SESSIONS, None)] * 3


def test_a_batch_is_large_by_its_bytes_too() -> None:
    text = "x" * 60_000
    publish = replace(FIRST_SIGNAL, outcome=replace(OUTCOME, explanation=text))

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
    publish = tuple(replace(FIRST_SIGNAL, is_first=first) for first in (True, False))

    first, later = batch_of(publish=publish).records

    assert (first.topic, first.key, first.partition) == (SIGNALS, b"s", None)
    assert first.value == later.value == encode_signal(SIGNAL)
    assert FIRST in first.headers
    assert FIRST not in later.headers


def test_all_signals_of_a_step_are_one_record_of_as_many_offsets() -> None:
    publish = tuple(replace(FIRST_SIGNAL, is_first=first) for first in (True, False))

    (record,) = batch_of(publish=publish, joined=True).records
    assert isinstance(record.value, bytes)
    read = Record(
        position=Position(SIGNALS, 0, 1), key=b"", value=record.value, time=0, count=record.count
    )
    signals = signals_in(read)

    assert (record.topic, record.key, record.partition, record.count) == (SIGNALS, b"s", None, 2)
    assert [each.json for each in signals] == [encode_signal(SIGNAL)] * 2
    assert [each.header.first for each in signals] == [True, False]


def test_the_start_of_a_scored_trace_travels_with_its_signal() -> None:
    subject = replace(CLOSED, start=1_700_000_000_000_000_001)
    started = replace(FIRST_SIGNAL, subject=subject)

    known, unknown = batch_of(publish=(started, FIRST_SIGNAL)).records

    assert start_in(known.headers) == 1_700_000_000_000_000_001
    assert start_in(unknown.headers) == 0


def test_redaction_removes_texts_and_keeps_the_id() -> None:
    publish = (FIRST_SIGNAL,)

    (record,) = batch_of(publish=publish, redact=True).records

    assert isinstance(record.value, bytes)
    shown = msgspec.json.decode(record.value)
    assert b"secret" not in record.value
    assert (shown["id"], shown["metadata"]) == (SIGNAL.id, {"text": None, "n": 1})


def test_signals_come_before_all_state_of_the_batch() -> None:
    batch = batch_of(HEAD)
    publish = (FIRST_SIGNAL,)
    batch.add(Effects(publish=publish, changes=(TURN,)), partition=3)

    assert [each.topic for each in batch.records] == [SIGNALS, SESSIONS, SESSIONS]


def test_state_of_a_partition_that_was_revoked_is_not_written() -> None:
    publish = (FIRST_SIGNAL,)
    batch = batch_of(HEAD, publish=publish)
    batch.add_changes((TURN,), partition=4)

    batch.forget(3)

    assert [(each.topic, each.partition) for each in batch.records] == [
        (SIGNALS, None),
        (SESSIONS, 4),
    ]
