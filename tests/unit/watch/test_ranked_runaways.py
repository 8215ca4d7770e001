"""Where the model calls of all traces are known it is said which trace runs away: once, and the same after a crash."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest

from collector.log.port import SIGNALS, TRACES
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.signal import Signal
from collector.records.subject import Subject
from collector.records.traces import RunawayRecord, TraceCalls
from collector.watch.ranking.ranker import Ranker
from evaluators.model import Outcome
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.ranking import RANKED, a_session, append, make_room
from tests.support.signals import hex_of, published_in

ALONE = Outcome(
    evaluator="runaway",
    version="1",
    method="deterministic",
    state="scored",
    score=1.0,
    success=True,
    threshold=0.5,
)


def looked_at(
    calls: int = 40, *, closed: bool = False, loop: bool = False, trace: str = "t", **fields: Any
) -> RunawayRecord:
    subject = Subject(
        scope="trace",
        service="bot",
        session_id="s-1",
        session_source="session.id",
        agent="planner",
        agent_version=None,
        seen=1_700_000_000.0,
        revision=fields.pop("revision", 0),
        closed="idle" if closed else None,
        trace_id=hex_of(trace),
        start=5 if closed else 0,
    )
    outcome = msgspec.structs.replace(
        ALONE, final=closed, score=0.0 if loop else 1.0, success=not loop
    )
    defaults: dict[str, Any] = {"model": "gpt-4o", "digest": "d", "is_first": closed}
    return RunawayRecord(
        subject=subject, model_calls=calls, outcome=outcome, **{**defaults, **fields}
    )


def warm(number: int = 10, calls: int = 5, *, ranker: Ranker | None = None) -> Ranker:
    """Traces of the agent have closed, each of a session that is still open."""
    made = ranker or Ranker(RANKED)
    for each in range(number):
        made.take(open_session(each, calls))
    return made


def open_session(number: int, calls: int) -> Any:
    trace = TraceCalls(
        trace_id=hex_of(f"warm-{number}"), agent="planner", model="gpt-4o", model_calls=calls
    )
    return a_session(f"warm-{number}", closed=None, trace=trace)


def said(ranker: Ranker, record: RunawayRecord) -> Signal | None:
    signals = ranker.take(record).signals
    return signals[0] if signals else None


def test_an_open_trace_with_far_more_model_calls_than_usual_is_reported_at_once() -> None:
    signal = said(warm(), looked_at())

    assert signal is not None
    assert (signal.score, signal.success, signal.final, signal.closed) == (0.0, False, False, None)
    assert (signal.scope, signal.trace_id, signal.revision) == ("trace", hex_of("t"), 0)
    assert signal.metadata["usual_model_calls"] == 5


@pytest.mark.parametrize("calls", [20, 40])
def test_a_healthy_open_trace_says_nothing(calls: int) -> None:
    assert said(warm(calls=10), looked_at(calls)) is None
    assert said(warm(9), looked_at(calls)) is None, "nothing is usual yet"


def test_a_loop_is_reported_without_any_history() -> None:
    signal = said(Ranker(RANKED), looked_at(0, loop=True))

    assert signal is not None
    assert signal.score == 0.0


def test_another_model_of_the_agent_has_its_own_usual() -> None:
    assert said(warm(), looked_at(model="gpt-4o-mini")) is None


def test_the_closing_gives_one_final_outcome_found_or_not() -> None:
    found, fine = (said(warm(calls=n), looked_at(closed=True)) for n in (5, 10))

    assert found is not None
    assert fine is not None
    assert (found.final, found.closed, found.score) == (True, "idle", 0.0)
    assert (fine.final, fine.score) == (True, 1.0)


def test_the_id_names_the_history_only_where_that_made_the_outcome() -> None:
    of = [said(warm(n, calls), looked_at(closed=True)) for n, calls in ((0, 5), (10, 10), (10, 5))]
    alone, beside, made = (each.id for each in of if each is not None)

    assert alone == beside != made


def test_a_repeat_is_silent_though_the_history_has_grown() -> None:
    ranker = warm()
    assert said(ranker, looked_at(closed=True)) is not None

    warm(30, 40, ranker=ranker)

    assert said(ranker, looked_at(closed=True)) is None
    assert said(ranker, looked_at(closed=True, revision=1)) is not None


def write(log: FaultyLog, record: RunawayRecord) -> None:
    """Assembly or scoring has written the record."""
    key = session_key(record.subject.service, record.subject.session_id)
    log.append(TRACES, encode(record), key=key)


async def test_a_crash_at_any_step_says_the_same_and_forgets_no_trace() -> None:
    async def lived(step: int | None) -> FaultyLog:
        log = FaultyLog(atomic=False)
        for number in range(10):
            append(log, open_session(number, 5))
        for each in (looked_at(), looked_at(closed=True), looked_at(closed=True, trace="u")):
            write(log, each)
        for crash_at in (step, None, None):
            if crash_at is None:
                write(log, looked_at(closed=True, trace="later"))
            log.restart(crash_at)
            room = make_room(log)
            room.join()
            with suppress(Crash):
                for _ in range(6):
                    await room.step()
        return log

    def reported(log: FaultyLog) -> dict[str, tuple[float | None, bool, bool]]:
        headers = [each.header for each in published_in(log.history(SIGNALS))]
        return {
            each.id: (each.score, each.final, each.first)
            for each in headers
            if each.evaluator == "runaway"
        }

    wanted = reported(await lived(None))
    assert sorted(wanted.values()) == [(0.0, False, False), *3 * [(0.0, True, True)]]
    for step in range(1, 30):
        assert reported(await lived(step)) == wanted, f"step {step}"
