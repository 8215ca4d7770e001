"""The gauge of open traces that run away: from the first finding to the final outcome, and never for ever."""

from typing import Any

from collector.log.port import WINDOWS
from collector.records.signal import Signal, redacted
from collector.watch.open_runaways import MAX_CLOSED, MAX_TRACES, OpenRunaways
from tests.support.publisher import Publisher
from tests.support.signals import BASE, hex_of, signal
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


async def test_a_found_trace_counts_once_with_its_final_outcome() -> None:
    publisher = Publisher()

    await at(BASE + 1, publisher, found(), found(id="again"), closed())

    assert publisher.value("evaluations_total", evaluator="runaway", outcome="fail") == 1
    assert publisher.value("window_samples", evaluator="runaway") == 1


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
