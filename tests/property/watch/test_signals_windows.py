"""Gauges depend on what was published, never on the order of arrival, the batches, or crashes."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.base.errors import LogUnavailable
from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from collector.records.windows import WindowEntry
from collector.watch.windows.window import Window
from tests.support.examples import USUAL, examples
from tests.support.faulty_log import FaultyLog
from tests.support.publisher import Publisher
from tests.support.signals import BASE, covered, signal

scores = st.integers(0, 20).map(lambda n: n / 20)
entries = st.builds(
    WindowEntry,
    session=st.integers(0, 8).map(str),
    time=st.integers(0, 50).map(float),
    revision=st.integers(0, 3),
    final=st.booleans(),
    id=st.integers(0, 3).map(str),
    score=scores,
    covered=st.booleans(),
    start=st.integers(0, 3),
    trace_id=st.sampled_from(["", "a", "b"]),
)


@given(st.data(), st.lists(entries, max_size=30), st.integers(1, 6))
@settings(deadline=None, max_examples=examples(USUAL))
def test_a_window_is_a_function_of_the_set_of_entries(
    data: st.DataObject, found: list[WindowEntry], limit: int
) -> None:
    distinct = list({(each.session, each.rank): each for each in found}.values())
    shuffled = data.draw(st.permutations(distinct))

    one = Window(sessions=limit, max_age=30.0, entries=distinct)
    other = Window(sessions=limit, max_age=30.0, entries=shuffled)

    assert one.entries == other.entries
    assert one.stats(55.0) == other.stats(55.0)


def with_score(entry: WindowEntry, score: float) -> WindowEntry:
    return replace(entry, score=score)


offered: st.SearchStrategy[WindowEntry | str | float] = st.builds(
    with_score, entries, st.floats(0, 1) | scores
)
operations = offered | st.integers(0, 8).map(str) | st.floats(25.0, 60.0)
"""A score is offered; a session goes over to another agent; log time passes and what is too old expires."""


@given(st.lists(operations, max_size=60), st.integers(1, 5), st.integers(0, 4))
@settings(deadline=None, max_examples=examples(300))
def test_the_running_mean_is_the_mean_of_the_sessions_that_count(
    found: list[WindowEntry | str | float], limit: int, spare: int
) -> None:
    """To the last bit: an alarm ends by it, and must end the same after a restart."""
    window = Window(sessions=limit, max_age=30.0, spare=spare)
    for each in found:
        if isinstance(each, WindowEntry):
            window.offer(each)
        elif not isinstance(each, str):
            window.expire(each)
        elif (held := window.get(each)) is not None:
            window.mark_gone(held)

        for now in (0.0, 40.0, 60.0):
            stats = window.stats(now)
            assert window.mean(now) == (None if stats is None else stats.bounds.mean)


@dataclass(frozen=True)
class Step:
    signals: tuple[Signal, ...]
    wait: float
    then: str
    """nothing, crash, or fail: the log fails at this very write, then the process is killed."""


@st.composite
def published(draw: st.DrawFn) -> Signal:
    at = BASE + draw(st.integers(0, 40))
    session = draw(st.sampled_from(["s-1", "s-2", "s-3", "s-4"]))
    trace = draw(st.sampled_from([None, f"{session}-t-1", f"{session}-t-2"]))
    present = draw(st.integers(0, 4))
    unseen = trace is None and present < 2
    return signal(
        session,
        trace,
        at=at,
        score=None if unseen else draw(scores),
        outcome="skipped" if unseen else "scored",
        agent=draw(st.sampled_from(["planner", "writer"])),
        agent_version=draw(st.sampled_from([None, "1", "2"])),
        revision=draw(st.integers(0, 5)),
        final=draw(st.booleans()),
        coverage=covered(4, present) if trace is None else None,
    )


steps = st.lists(
    st.builds(
        Step,
        signals=st.lists(published(), max_size=6).map(tuple),
        wait=st.sampled_from([0.0, 1.0, 10.0, 30.0]),
        then=st.sampled_from(["nothing", "crash", "fail"]),
    ),
    max_size=12,
)


async def walk(script: list[Step], *, crashing: bool, partitions: int) -> Publisher:
    limits = AgentWindow(sessions=3, max_age=60.0)
    publisher = Publisher(log=FaultyLog(partitions=partitions), limits=limits)
    for step in script:
        await publisher.publish(*step.signals)
        publisher.log.clock.now += step.wait
        if crashing and step.then == "crash":
            publisher = publisher.successor()
        if crashing and step.then == "fail":
            publisher.log.fails = LogUnavailable("away")
            with suppress(LogUnavailable):
                await publisher.step()
            publisher.log.fails = None
            publisher = publisher.successor()
        await publisher.step()
    return publisher


@given(steps, st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=examples(90))
def test_neither_a_restart_nor_partitions_change_a_gauge_and_nothing_counts_twice(
    script: list[Step], partitions: int
) -> None:
    async def run() -> tuple[Publisher, Publisher]:
        return (
            await walk(script, crashing=False, partitions=1),
            await walk(script, crashing=True, partitions=partitions),
        )

    def shown(publisher: Publisher) -> dict[object, float]:
        # The detector of an objective takes scores in the order in which partitions are read.
        left_out = "spanwise_objective" if partitions > 1 else "-"
        return {k: v for k, v in publisher.gauges().items() if not k[0].startswith(left_out)}

    steady, crashed = asyncio.run(run())

    assert shown(crashed) == shown(steady)


@given(st.lists(st.tuples(published(), st.booleans()), max_size=30), st.integers(1, 7))
@settings(deadline=None, max_examples=examples(60))
def test_no_outcome_counts_twice_whatever_crashes(
    found: list[tuple[Signal, bool]], every: int
) -> None:
    """The counts of all lives together are the counts of one life."""

    async def count(*, crashing: bool) -> float:
        publisher = Publisher()
        total = 0.0
        for number, (each, first) in enumerate(found):
            await publisher.publish(each, first=first)
            if crashing and number % every == 0:
                total += evaluations(publisher)
                publisher = publisher.successor()
        return total + evaluations(publisher)

    def evaluations(publisher: Publisher) -> float:
        return sum(
            sample.value
            for metric in publisher.telemetry.registry.collect()
            for sample in metric.samples
            if sample.name in ("spanwise_evaluations_total", "spanwise_revisions_total")
        )

    # Without ids that come again: remembering those over a restart is not promised.
    found = list({each.id: (each, first) for each, first in found}.values())

    assert asyncio.run(count(crashing=True)) == asyncio.run(count(crashing=False))
