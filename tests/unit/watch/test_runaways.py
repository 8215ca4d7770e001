"""Which trace runs away is said once and the same after a crash; the gauge of those that are open."""

from contextlib import suppress
from typing import Any

import msgspec

from collector.log.port import SIGNALS, TRACES, WINDOWS
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.signal import Signal, redacted
from collector.records.subject import Subject
from collector.records.traces import RunawayRecord, TraceCalls
from collector.watch.open_runaways import MAX_CLOSED, MAX_TRACES, OpenRunaways
from collector.watch.ranking.ranker import Ranker
from evaluators.model import Outcome
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.publisher import Publisher
from tests.support.ranking import RANKED, a_session, append, make_room
from tests.support.signals import BASE, hex_of, published_in, signal
from tests.support.state_tables import state_key
from tests.support.table import for_each

HOUR = 3600.0


def found(trace: str = "t-1", **fields: Any) -> Signal:
    """What is said of a trace that is open."""
    defaults: dict[str, Any] = {
        "evaluator": "runaway",
        "score": 0.0,
        "final": False,
        "closed": None,
        "metadata": {"most_of_one_call": 10},
    }
    return signal(trace=trace, **{**defaults, **fields})


def closed(trace: str = "t-1", **fields: Any) -> Signal:
    return found(trace, **{"final": True, "closed": "idle", **fields})


def usual(**fields: Any) -> Signal:
    return found(metadata={"model_calls": 40, "usual_model_calls": 5}, **fields)


async def at(time: float, publisher: Publisher, *signals: Signal) -> None:
    publisher.log.clock.now = time
    await publisher.publish(*signals)


def shown(publisher: Publisher, reason: str = "repeated_calls") -> float | None:
    return publisher.value("runaway_traces", service="support-bot", agent="planner", reason=reason)


async def test_it_is_shown_until_the_trace_closes() -> None:
    publisher = Publisher()

    await at(BASE + 1, publisher, found(), found("t-2"), usual(trace="t-3"))
    assert (shown(publisher), shown(publisher, "model_calls")) == (2, 1)
    (standing,) = publisher.exporter.standings().values()
    assert [each.trace_id for each in standing.runaways] == [hex_of(f"t-{n}") for n in (1, 2, 3)]

    await at(BASE + 2, publisher, closed(), closed("t-2", score=1.0), closed("t-3"))
    assert (shown(publisher), shown(publisher, "model_calls")) == (None, None)


async def test_it_survives_a_kill() -> None:
    publisher = Publisher()
    await at(BASE + 1, publisher, found(), found("t-2"))
    await publisher.exporter.finish()
    await at(BASE + 2, publisher, closed("t-2"))

    after = publisher.successor()
    await after.step()

    assert shown(after) == 1
    assert state_key("runaway", hex_of("t-1")) in {each.key for each in after.log.history(WINDOWS)}


@for_each(
    "said,seconds,reason,count",
    [
        ([closed(), found()], 1, "repeated_calls", None),  # it came after the closing
        ([closed(), found(revision=1, at=BASE + 2)], 2, "repeated_calls", 1),  # opened again
        ([found(), found(at=BASE + 60, id="again")], HOUR + 59, "repeated_calls", 1),
        ([redacted(usual())], 1, "model_calls", 1),
        ([found(score=1.0), found(evaluator="confidence")], 1, "repeated_calls", None),
    ],
)
async def test_what_is_shown(
    said: list[Signal], seconds: float, reason: str, count: int | None
) -> None:
    publisher = Publisher()
    for each in said:
        await at(BASE + 1, publisher, each)

    publisher.log.clock.now = BASE + seconds

    assert shown(publisher, reason) == count


async def test_a_trace_whose_outcome_never_comes_is_forgotten_once_it_must_have_closed() -> None:
    publisher = Publisher()
    await at(BASE + 1, publisher, found())

    publisher.log.clock.now = BASE + HOUR - 1
    assert shown(publisher) == 1
    publisher.log.clock.now = BASE + HOUR
    assert shown(publisher) is None
    await at(BASE + HOUR, publisher, signal(trace="t-9"))
    await publisher.exporter.finish()

    assert publisher.value("runaway_traces_dropped_total", reason="max_age") == 1


def test_both_memories_are_bounded() -> None:
    runaways = OpenRunaways(HOUR)
    dropped = [runaways.find(found(f"t-{n}")) for n in range(MAX_TRACES + 1)]
    shown_now = [each.trace_id for each in runaways.shown(BASE)]

    assert dropped == [None] * MAX_TRACES + ["max_traces"]
    assert hex_of("t-0") not in shown_now
    assert len(shown_now) == MAX_TRACES

    for number in range(MAX_CLOSED + 9):
        runaways.close(f"{number:032x}", 0)
    assert len(runaways._closed) == MAX_CLOSED


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


@for_each(
    "ranker,record,wanted",
    [
        # An open trace says nothing while it is healthy, or nothing is usual yet.
        *((warm(calls=10), looked_at(calls), None) for calls in (20, 40)),
        *((warm(9), looked_at(calls), None) for calls in (20, 40)),
        (warm(), looked_at(model="gpt-4o-mini"), None),  # which has its own usual
        (Ranker(RANKED), looked_at(0, loop=True), (0.0, False, None)),  # without any history
        # The closing gives one final outcome.
        (warm(), looked_at(closed=True), (0.0, True, "idle")),
        (warm(calls=10), looked_at(closed=True), (1.0, True, "idle")),
    ],
)
def test_what_is_said_of_a_trace(
    ranker: Ranker, record: RunawayRecord, wanted: tuple[float, bool, str | None] | None
) -> None:
    signal = said(ranker, record)

    assert (signal and (signal.score, signal.final, signal.closed)) == wanted


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
