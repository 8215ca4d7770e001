"""Who has label values of their own: those that report most, whoever came first; and what becomes of the others."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from collector.base.slots import FEW, HALF_LIFE, WAITING, Slots
from collector.base.telemetry import LONGEST_LABEL, OTHER, Telemetry
from collector.log.port import WINDOWS, New
from tests.support.publisher import Publisher, closed_trace
from tests.support.signals import BASE, signal
from tests.support.state_tables import state_key
from tests.support.table import for_each

FULL = 64


Counted = tuple[float, Iterable[str], list[str]]
"""The hours that have passed, names that report, and those that lose their slots."""
STORIES: Mapping[str, tuple[int, list[Counted]]] = {
    "a newcomer takes the slot of the least once it has clearly more": (
        2,
        [(0, ["a"] * 5 + ["b"] * 2 + ["c"] * 4, []), (0, ["c"], ["b"])],
    ),
    "names of like volume do not take slots from each other": (
        2,
        [(0, ["a", "b", "c", "d"] * 500, [])],
    ),
    "fewer traces than a few take no slot whatever the volume of its holder": (
        1,
        [(0, ["quiet"], []), (100, ["new"] * (FEW - 1), []), (100, ["new"], ["quiet"])],
    ),
    "an event counts half after an hour: 6 is not more than twice 3": (
        1,
        [(0, ["a"] * 6, []), (1, ["b"] * 6, []), (1, ["b"], ["a"])],
    ),
    "a loser keeps its volume and comes back: 10 is not more than twice 5": (
        1,
        [(0, ["a"] * 2 + ["b"] * 5, ["a"]), (0, ["a"] * 8, []), (0, ["a"], ["b"])],
    ),
    # In a full table a newcomer inherits the least one's volume as a bound, never as its own.
    "what a name may have had before it came into the table takes no slot": (
        1,
        [(0, ["holder"] * 10, []), (0, [f"junk-{n // FEW}" for n in range(WAITING * 40)], [])],
    ),
}


@for_each("story", STORIES)
def test_who_loses_a_slot(story: str) -> None:
    size, counted = STORIES[story]
    slots: Slots[str] = Slots(size)

    for hours, names, losers in counted:
        lost = [slots.count(name, BASE + hours * HALF_LIFE) for name in names]
        assert [each for each in lost if each is not None] == losers


async def full() -> Publisher:
    """A publisher whose slots are taken by agents of one trace and one score each."""
    publisher = Publisher()
    for n in range(FULL):
        await publisher.close_traces(closed_trace(f"junk-{n}", 0))
        await publisher.publish(signal(f"s-{n}", f"t-{n}", agent=f"junk-{n}"))
    return publisher


async def test_an_agent_that_reports_gets_its_series_and_the_least_ones_end() -> None:
    publisher = await full()
    await publisher.publish(signal("s", "early", agent="real"))
    assert publisher.value("evaluations_total", agent=OTHER) == 1

    await publisher.close_traces(*(closed_trace("real", n) for n in range(FEW)))
    await publisher.publish(signal("s", "t", agent="real"))

    assert publisher.value("evaluations_total", agent="real") == 1
    assert publisher.value("trace_duration_seconds_count", agent="real") == 1
    assert publisher.value("window_samples", agent="real") == 1
    # What was counted as another stays there, and what the loser had ends: no event is counted twice.
    assert publisher.value("evaluations_total", agent=OTHER) == 1
    assert publisher.value("trace_duration_seconds_count", agent=OTHER) == FEW - 1
    for family in ("evaluations_total", "trace_duration_seconds_count", "window_samples"):
        assert publisher.value(family, agent="junk-0") is None
        assert publisher.value(family, agent="junk-1") == 1


async def test_the_slots_survive_a_restart_with_their_volumes() -> None:
    publisher = await full()
    await publisher.close_traces(*(closed_trace("real", n) for n in range(FEW)))
    await publisher.close_traces(*(closed_trace("junk-1", n) for n in (1, 2, 3)))
    await publisher.close_traces(*(closed_trace("waiting", n) for n in range(FEW - 1)))
    await publisher.exporter.finish()
    gauges = publisher.gauges()

    after = publisher.successor()
    await after.step()
    assert after.gauges() == gauges
    await after.close_traces(closed_trace("waiting", FEW))
    await after.publish(signal("s", "t", agent="waiting"))

    assert after.value("evaluations_total", agent="waiting") == 1
    assert after.value("window_samples", agent="junk-1") == 1
    assert after.value("window_samples", agent="junk-2") is None


async def test_windows_without_the_record_of_slots_take_slots_by_their_newest_score() -> None:
    publisher = await full()
    await publisher.publish(signal("s-0", "t-later", agent="junk-0", at=BASE + 1))
    await publisher.exporter.finish()
    await publisher.log.write([New(topic=WINDOWS, key=state_key("slots", ""), value=None)])

    after = publisher.successor()
    await after.step()
    assert after.gauges() == publisher.gauges()
    await after.close_traces(*(closed_trace("real", n) for n in range(FEW)))
    await after.publish(signal("s", "t", agent="real"))

    assert after.value("window_samples", agent="real") == 1


async def test_the_removal_of_a_loser_is_written_even_while_windows_are_being_stored() -> None:
    """The reader of traces takes a slot away while the reader of signals waits for its write."""
    publisher = await full()
    await publisher.exporter.finish()
    targets = publisher.exporter._targets
    await publisher.publish(signal("s-0", "t-again", agent="junk-0"))

    _slots, _versions, windows = targets.tables
    windows.pending()
    for _ in range(FEW):
        targets.count_trace("support-bot", "real", BASE)
    windows.written()

    (removed,) = (each.key for each in windows.pending() if each.value is None)
    assert b"support-bot" in removed
    assert b"junk-" in removed


async def test_what_was_found_for_a_name_does_not_outlive_its_slot() -> None:
    publisher = await full()
    agents = [f"junk-{n}" for n in range(FULL)]
    await publisher.publish(*(signal(each, f"t-{each}", agent=each) for each in agents))

    await publisher.close_traces(*(closed_trace("real", n) for n in range(FEW)))
    await publisher.publish(*(signal(each, f"t-again-{each}", agent=each) for each in agents))

    counts = [publisher.value("evaluations_total", agent=each) for each in agents]
    assert sorted(counts, key=bool) == [None] + [3] * (FULL - 1)
    assert publisher.value("evaluations_total", agent=OTHER) == 1


async def test_an_agent_that_calls_itself_other_takes_no_slot() -> None:
    publisher = Publisher()

    await publisher.close_traces(*(closed_trace(OTHER, n) for n in range(FEW)))
    await publisher.publish(signal(agent=OTHER))

    assert publisher.value("evaluations_total", service=OTHER, agent=OTHER) == 1


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_every_label_value_is_short_whoever_made_the_name(kind: str) -> None:
    telemetry = Telemetry(CollectorRegistry())
    long = "model" * 200_000

    if kind == "counter":
        telemetry.counter("c", "c", "model type").labels(long, "x" * 500)
    elif kind == "gauge":
        telemetry.gauge("g", "g", "model").labels(model=long).set(1)
    else:
        telemetry.histogram("h", "h", "model", buckets=(1,)).labels(long).observe(1)

    body, _ = telemetry.exposition("text/plain")
    longest = max(
        len(value)
        for metric in telemetry.registry.collect()
        for sample in metric.samples
        for value in sample.labels.values()
    )
    assert longest <= LONGEST_LABEL
    assert len(body) < 10_000


async def test_names_of_signals_are_short_in_every_series_and_in_the_windows() -> None:
    """Signals that an older version wrote, or another program: they are not read by our dialects."""
    publisher = Publisher()
    long = "n" * 1_000_000

    names: dict[str, Any] = {
        "service": f"s{long}",
        "agent": f"a{long}",
        "agent_version": f"1{long}",
    }
    for scope in ("t", None):
        await publisher.publish(signal(f"session {long}", scope, evaluator=f"e{long}", **names))
        await publisher.publish(signal(f"session {long}", scope, **names))
    await publisher.exporter.finish()

    body, _ = publisher.telemetry.exposition("text/plain")
    assert len(body) < 100_000
    assert sum(len(each.value) for each in publisher.log.history(WINDOWS)) < 20_000
    assert publisher.value("agent_reliability_ratio") is not None
