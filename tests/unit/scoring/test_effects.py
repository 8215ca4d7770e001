"""What scoring decides becomes signals and their bytes."""

import dataclasses
from collections.abc import Collection

from msgspec.structs import replace

from collector.log.port import SESSIONS, SIGNALS, TRACES, Position, Record
from collector.records.cloud_events import FIRST, start_in
from collector.records.sessions import SessionAwaited, SessionTurn, decode_sessions, session_key
from collector.records.signal import Coverage, Signal, encode_signal
from collector.records.signal_batch import signals_in
from collector.records.subject import Subject
from collector.records.traces import RunRecord, SessionRecord, decode_traces
from collector.scoring.effects import Change, Effects, Publication, Tombstone, WriteBatch
from collector.scoring.outcome_signals import OutcomeSignals
from collector.scoring.session_end import unscored_turn
from evaluators.judge_use import JudgeUse
from evaluators.model import Outcome
from tests.support.scoring_fakes import (
    CLOSED,
    HEAD,
    judged_rules,
    make_record,
    rules,
    summarised,
    verdict_of,
)

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


def test_what_changes_goes_to_its_partition_under_its_own_key_and_a_drop_is_its_tombstone() -> None:
    states = (HEAD, TURN, AWAITED)
    keys = (KEY, KEY + b"\0t1", KEY + b"\0awaited\0d")
    reports = (
        SessionRecord(service="bot", session_id="s", closed="idle", traces=(1, 2)),
        RunRecord(service="bot", session_id="s", agent="a", task_id="t", success=None, ended=1.0),
        verdict_of(make_record("t1")),
    )

    state, traces = batch_of(*states).records, batch_of(*reports).records
    dropped = batch_of(*(Tombstone(state=each) for each in states)).records

    for key, put, drop in zip(keys, state, dropped, strict=True):
        assert (put.topic, put.key, put.partition) == (SESSIONS, key, 3)
        assert (drop.topic, drop.key, drop.partition, drop.value) == (SESSIONS, key, 3, None)
    assert {(each.topic, each.key, each.partition) for each in traces} == {(TRACES, KEY, 3)}
    values = [each.value for each in (*state, *traces) if isinstance(each.value, bytes)]
    assert [decode_sessions(each) for each in values[:3]] == [*states]
    assert [decode_traces(each) for each in values[3:]] == [*reports]


def test_a_batch_is_large_by_its_bytes_too() -> None:
    text = "x" * 60_000
    publish = replace(FIRST_SIGNAL, outcome=replace(OUTCOME, explanation=text))

    batch = batch_of(publish=(publish,) * 100)
    assert not batch.is_large
    batch.add(Effects(publish=(publish,) * 50), partition=3)
    assert batch.is_large

    batch.clear()
    assert not batch.is_large


def test_a_signal_is_keyed_by_its_session_and_has_its_start_and_whether_it_is_the_first() -> None:
    started = replace(FIRST_SIGNAL, subject=replace(CLOSED, start=1_700_000_000_000_000_001))

    first, later = batch_of(publish=(started, replace(FIRST_SIGNAL, is_first=False))).records

    assert (first.topic, first.key, first.partition) == (SIGNALS, b"s", None)
    assert later.value == encode_signal(SIGNAL)
    assert (FIRST in first.headers, FIRST in later.headers) == (True, False)
    assert [start_in(each.headers) for each in (first, later)] == [1_700_000_000_000_000_001, 0]


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


def test_state_of_a_partition_that_was_revoked_is_not_written() -> None:
    publish = (FIRST_SIGNAL,)
    batch = batch_of(HEAD, publish=publish)
    batch.add_changes((TURN,), partition=4)

    batch.forget(3)

    assert [(each.topic, each.partition) for each in batch.records] == [
        (SIGNALS, None),
        (SESSIONS, 4),
    ]


SCORED = Outcome(
    evaluator="confidence", version="1", method="deterministic", state="scored", score=0.5
)
USE = JudgeUse(model="m", calls=1, input_tokens=2, output_tokens=3, cost_usd=None, cached=False)
JUDGED = replace(SCORED, method="llm_judge", judge=USE)
ENTRY: SessionTurn = unscored_turn(
    summarised(make_record("t1", seen=3.0, revision=2)), service="bot", session_id="s", offset=7
)
SESSION = replace(CLOSED, agent_version="2", revision=11)


def of_trace(*outcomes: Outcome, known: Collection[str] | None = ()) -> list[Publication]:
    half = dataclasses.replace(judged_rules(), probability=0.5)
    signals = OutcomeSignals(rules=rules(half))
    return signals.of_trace(ENTRY, outcomes, known)[0]


def test_every_field_of_a_subject_but_its_times_is_a_field_of_the_signal() -> None:
    hidden = {"seen", "start", "first_trace", "newest_trace", "more"}
    assert set(Subject.__struct_fields__) - set(Signal.__struct_fields__) == hidden


def test_a_signal_of_a_trace_names_its_trace_and_its_session_and_the_sample_of_a_judged_one() -> (
    None
):
    signal, judged = (each.signal for each in of_trace(SCORED, JUDGED))

    assert (signal.scope, signal.trace_id, signal.span_id) == ("trace", "t1", "b" * 16)
    assert (signal.service, signal.session_id, signal.session_source) == ("bot", "s", "session.id")
    assert (signal.agent, signal.agent_version, signal.closed) == ("planner", None, "root_ended")
    assert (signal.time, signal.revision) == ("1970-01-01T00:00:03.000000Z", 2)
    assert (signal.evaluator, signal.score, signal.outcome) == ("confidence", 0.5, "scored")
    assert (signal.sample_probability, judged.sample_probability) == (1.0, 0.5)


def test_a_signal_of_a_closed_session_names_no_trace() -> None:
    tone = replace(JUDGED, evaluator="tone", coverage=(3, 2))
    signals = OutcomeSignals(rules=rules(judged_rules()))

    (publication,) = signals.of_session_input(SESSION, [tone], "d")

    signal = publication.signal
    assert (signal.scope, signal.trace_id, signal.span_id) == ("session", None, None)
    assert (signal.agent, signal.agent_version, signal.closed) == ("planner", "2", "idle")
    assert (signal.revision, signal.coverage) == (11, Coverage(expected=3, present=2))
    assert signal.judge == USE


def test_the_first_final_outcome_of_an_evaluator_is_marked() -> None:
    def is_first(outcome: Outcome, known: Collection[str] | None) -> bool:
        (publication,) = of_trace(outcome, known=known)
        return publication.is_first

    assert is_first(SCORED, ())
    assert not is_first(SCORED, {"confidence"})
    assert not is_first(replace(SCORED, final=False), ())
    assert not is_first(SCORED, None), "a revision of a trace that has left the window"


def test_an_outcome_that_is_not_emitted_leaves_an_id_and_no_signal() -> None:
    hidden = replace(SCORED, evaluator="hidden")

    publish, entry = OutcomeSignals(rules=rules()).of_trace(ENTRY, [hidden], ())

    assert publish == []
    assert entry.turn.scores == {"hidden": 0.5}
    assert set(entry.signal_ids) == {"hidden"}


def test_a_trace_that_waits_in_vain_ends_with_skipped_outcomes() -> None:
    entry = replace(ENTRY, due=("confidence",))

    publish, ended = OutcomeSignals(rules=rules(judged_rules())).without_verdict(entry, "overload")

    (signal,) = (each.signal for each in publish)
    assert (signal.outcome, signal.reason) == ("skipped", "overload")
    assert ended.due == ()
    assert ended.turn.unscored == ("confidence",)
