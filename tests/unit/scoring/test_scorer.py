"""Scoring over a log: what is published, what is kept, and what a log that refuses changes: nothing."""

import asyncio

import pytest

from collector.base.errors import LogFull
from collector.base.telemetry import Telemetry
from collector.log.port import SESSIONS, SIGNALS, TRACES, Position
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.traces import SessionRecord, decode_traces
from tests.support.counted import counted
from tests.support.faulty_log import FaultyLog, unavailable
from tests.support.scoring_fakes import (
    append,
    append_bytes,
    latest,
    make_record,
    make_scorer,
    run_to_end,
    scored_log,
    shown,
    signals,
    windows,
)
from tests.support.signals import jsons_in, published_in


@pytest.fixture
def log() -> FaultyLog:
    return scored_log()


async def test_it_is_at_rest_while_no_session_is_open(log: FaultyLog) -> None:
    scorer = make_scorer(log, limits=windows(idle=10.0))
    scorer.join()
    rests: list[bool] = []
    await scorer.step()  # which assigns the partition
    rests.append(scorer.is_at_rest)
    append(log, make_record("t1"))

    for now in (5.0, 60.0):
        log.clock.now = now
        await scorer.step()
        rests.append(scorer.is_at_rest)

    assert rests == [True, False, True]


def compared(log: FaultyLog, trace_id: str) -> list[object]:
    """The outputs that a trace was compared with, each time."""
    found = [each for each in shown(log, "loop_detection") if each.trace_id == trace_id]
    return [each.metadata.get("texts") for each in found]


async def test_a_late_turn_and_its_three_followers_are_compared_as_the_log_has_them(
    log: FaultyLog,
) -> None:
    for n in range(20):
        append(log, make_record(f"t{n:02}", start=2 * n))
    append(log, make_record("late", start=7))

    await run_to_end(make_scorer(log), log)

    before = ["out t01 0", "out t02 0", "out t03 0"]
    assert compared(log, "late") == [before]
    assert compared(log, "t04") == [before, [*before[1:], "out late 0"]]
    assert [len(compared(log, f"t{n:02}")) for n in (3, 4, 5, 6, 7)] == [1, 2, 2, 2, 1]
    assert len([each for each in shown(log, "confidence") if each.trace_id == "t04"]) == 1
    assert first_counts(log)["t04", "loop_detection"] == 1
    assert not any(b"out t" in each.value for each in log.history(SESSIONS))


async def test_a_follower_that_has_expired_stays_as_it_was(log: FaultyLog) -> None:
    expired = append(log, make_record("t1", start=1))
    await run_to_end(make_scorer(log), log)
    log.expire(Position(TRACES, 0, expired))
    append(log, make_record("t0", start=0))

    await run_to_end(make_scorer(log), log)

    assert len([each for each in shown(log, "loop_detection") if each.trace_id == "t1"]) == 1


async def test_a_record_without_outcomes_is_kept_and_its_evaluators_fail(log: FaultyLog) -> None:
    record = make_record("t1")
    append_bytes(log, session_key("bot", "s"), encode(record))
    append(log, make_record("t2", start=1))

    await run_to_end(make_scorer(log), log)

    outcomes = {(each.trace_id, each.evaluator): each.outcome for each in signals(log)}
    assert outcomes["t1", "confidence"] == outcomes["t1", "loop_detection"] == "failed"
    assert outcomes["t2", "confidence"] == "scored"
    assert compared(log, "t2") == [[""]]


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_trace_counts_once(log: FaultyLog, *, restarts: bool) -> None:
    """Rule 7, which needs rule 5 across a restart."""
    telemetry = Telemetry()
    append(log, make_record("t1"))
    if restarts:
        await run_to_end(make_scorer(log), log)
    append(log, make_record("t1"))

    await run_to_end(make_scorer(log, telemetry=telemetry), log)

    assert len(shown(log, "confidence")) == 1
    assert counted(telemetry, "trace_records_dropped_total", reason="repeated") == 1


async def test_signals_then_session_record_then_commit(log: FaultyLog) -> None:
    """Rule 4."""
    append(log, make_record("t1"))
    await make_scorer(log).drain()

    for records, _commits in log.calls:
        topics = [each.topic for each in records]
        assert topics == sorted(topics, key=lambda topic: topic != SIGNALS)
    records, commits = log.calls[0]
    assert {each.topic for each in records} == {SIGNALS, SESSIONS}
    assert [each.offset for each in commits] == [1]


@pytest.mark.parametrize("by_a_record", [True, False])
async def test_an_idle_session_closes_at_log_time(log: FaultyLog, *, by_a_record: bool) -> None:
    """Also where the partition is at its end and no record comes."""
    telemetry = Telemetry()
    offset = append(log, make_record("t1", session="a"), 0.0)
    append(log, make_record("t2", session="b"), 9.9)
    limits = windows(idle=10.0)
    await run_to_end(make_scorer(log, limits=limits, telemetry=telemetry), log)
    assert not any(each.closed for each in shown(log, "agent_reliability"))

    if by_a_record:
        append(log, make_record("t3", session="b"), 10.0)
    log.clock.now = 10.0
    await run_to_end(make_scorer(log, limits=limits, telemetry=telemetry), log)

    last = latest(log)["session", "a", "agent_reliability"]
    assert (last.final, last.closed, last.revision) == (True, "idle", offset + 1)
    assert "per_trace_signals" in last.metadata
    assert counted(telemetry, "sessions_closed_total", service="bot", reason="idle") == 1
    assert counted(telemetry, "sessions_active") == 1
    assert first_counts(log)["a", "agent_reliability"] == 1


async def test_a_closed_session_leaves_a_record_and_no_state(log: FaultyLog) -> None:
    offsets = [append(log, make_record(f"t{n}", start=-n)) for n in range(3)]

    await make_scorer(log).drain("shutdown")

    closed = [decode_traces(each.value) for each in log.history(TRACES)][-1]
    assert closed == SessionRecord(
        service="bot", session_id="s", closed="shutdown", traces=tuple(reversed(offsets))
    )
    assert [each async for each in log.replay(SESSIONS, 0)] == []


async def test_a_later_trace_opens_the_session_afresh(log: FaultyLog) -> None:
    limits = windows(idle=10.0)
    append(log, make_record("t1"), 0.0)
    append(log, make_record("t2"), 20.0)

    await run_to_end(make_scorer(log, limits=limits), log)
    await make_scorer(log, limits=limits).drain()

    final = [each for each in shown(log, "agent_reliability") if each.final]
    assert [list(each.metadata["per_trace_signals"]) for each in final] == [["t1"], ["t2"]]
    assert first_counts(log)["s", "agent_reliability"] == 2


async def test_redaction_reaches_the_signals(log: FaultyLog) -> None:
    append(log, make_record("t1", output="a secret"))

    await make_scorer(log, redact=True).drain()

    assert not any(b"secret" in each for each in jsons_in(log.history(SIGNALS)))
    assert shown(log, "confidence")[0].metadata == {"text": None, "n": 1}


def first_counts(log: FaultyLog) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for each in published_in(log.history(SIGNALS)):
        key = (each.subject.trace_id or each.subject.session_id, each.header.evaluator)
        counts[key] = counts.get(key, 0) + each.header.first
    return counts


# --- while the log refuses, and records that can never be processed ---------------------------------------------------


async def test_a_full_log_is_tried_again_and_state_applied_once(log: FaultyLog) -> None:
    append(log, make_record("t1"))
    log.write_failures = [LogFull("full")] * 3

    await make_scorer(log).drain()

    assert len(shown(log, "confidence")) == 1
    assert len([each for each in shown(log, "latency") if each.final]) == 1


async def test_a_log_that_does_not_answer_is_asked_again(log: FaultyLog) -> None:
    append(log, make_record("t1", start=1))
    await run_to_end(make_scorer(log), log)
    append(log, make_record("t0", start=0))
    log.get_failures = unavailable(2)

    await run_to_end(make_scorer(log), log)

    assert len([each for each in shown(log, "loop_detection") if each.trace_id == "t1"]) == 2


async def test_a_stop_while_the_log_is_full_loses_nothing(log: FaultyLog) -> None:
    append(log, make_record("t1"))
    log.write_failures = [LogFull("full")] * 2
    stopping = asyncio.Event()

    async def pause(_seconds: float) -> None:
        stopping.set()

    await make_scorer(log, pause=pause).run(stopping)
    assert not log.history(SIGNALS)

    await make_scorer(log).drain()

    assert len(shown(log, "confidence")) == 1


async def test_poison_is_named_counted_and_passed_over(
    log: FaultyLog, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = Telemetry()
    append_bytes(log, b"bot\0s", b"\xff\xff")
    append_bytes(log, b"no session key", b"\xc1")
    append(log, make_record("t1"))
    append_bytes(log, b"nonsense", log.history(TRACES)[-1].value)

    await run_to_end(make_scorer(log, telemetry=telemetry), log)

    assert counted(telemetry, "poison_records_total", topic="traces") == 3
    assert "`traces`, partition 0, offset 100" in caplog.text
    assert len(shown(log, "confidence")) == 1


async def test_a_record_too_large_is_dropped_and_the_rest_written(log: FaultyLog) -> None:
    telemetry = Telemetry()
    append(log, make_record("t1"))
    log.largest = {SESSIONS: 0}

    await run_to_end(make_scorer(log, telemetry=telemetry), log)

    assert len(shown(log, "confidence")) == 1
    assert counted(telemetry, "poison_records_total", topic="sessions") > 0
    assert log.committed("scoring", TRACES, 0).offset == 1
