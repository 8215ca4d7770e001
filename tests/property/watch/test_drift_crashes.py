"""Wherever the exporter crashes or loses partitions, each score enters its past once, in the same order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from tests.support.drift import defined, held, same
from tests.support.examples import examples
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.publisher import SHORT, Publisher
from tests.support.signals import new, signal

SETTLE = 20.0
PARTITIONS = 2


@dataclass(frozen=True)
class Step:
    signals: tuple[tuple[Signal, bool], ...]
    """Each with whether counters count it."""
    wait: float
    """Seconds after them."""
    then: str
    """lose one partition, lose all, get them back, or nothing."""


@st.composite
def scripts(draw: st.DrawFn) -> list[Step]:
    """Sessions of two agents that speak, close and are opened again, with repeats of what they said."""
    script: list[Step] = []
    revision, said = 0, list[Signal]()
    for _ in range(draw(st.integers(1, 10))):
        some: list[tuple[Signal, bool]] = []
        for _ in range(draw(st.integers(0, 8))):
            if said and draw(st.integers(0, 9)) == 0:
                some.append((draw(st.sampled_from(said)), True))
                continue
            revision += 1
            session = f"s-{draw(st.integers(0, 30))}"
            trace = draw(st.sampled_from([None, None, None, session]))
            score = draw(st.sampled_from([0.1, 0.2, 0.3, 0.8, 0.9, 1.0, None]))
            each = signal(
                session,
                trace,
                score=score,
                outcome="skipped" if score is None else "scored",
                agent=draw(st.sampled_from(["planner", "planner", "writer"])),
                agent_version=draw(st.sampled_from(["1", "2"])),
                revision=revision,
                final=draw(st.booleans()),
            )
            said.append(each)
            some.append((each, draw(st.booleans())))
        wait = draw(st.sampled_from([0.0, 1.0, 7.0, SETTLE, 30.0, 90_000.0]))
        then = draw(st.sampled_from(["", "", "", "lose one", "lose all", "get back"]))
        script.append(Step(tuple(some), wait, then))
    return script


async def walk(
    script: list[Step], crashes: Sequence[int] = (), *, most: int = 256, rebalances: bool = False
) -> tuple[FaultyLog, Publisher]:
    """The process after the script, each one before it crashed at the next of these steps; a poll reads `most`."""
    log = FaultyLog(partitions=PARTITIONS, atomic=False)
    left = [*crashes]
    lost: set[int] = set()

    def start(crash_at: int | None) -> Publisher:
        log.restart(crash_at)
        lost.clear()
        publisher = Publisher(log=log, drops=SHORT, limits=AgentWindow(settle=SETTLE))
        publisher.exporter._max_records = most
        return publisher

    publisher = start(left.pop(0) if left else None)
    for step in script:
        for each, first in step.signals:
            log._write([new(each, first=first)], ())
        if rebalances and log.readers and publisher.joined:
            _rebalance(log, lost, step.then)
        # All waits together are less than the time for which log time waits for a partition.
        log.clock.now += min(step.wait, 10.0) if rebalances else step.wait
        for _ in range(3):
            try:
                await publisher.step()
            except Crash:
                publisher = start(left.pop(0) if left else None)
    if log._crashed or not publisher.joined:
        publisher = start(None)
        await publisher.step()
    log.crash_at = None
    _rebalance(log, lost, "get back")
    await _read_to_end(publisher)
    return log, publisher


async def _read_to_end(publisher: Publisher) -> None:
    log = publisher.log
    log.clock.now += SETTLE + 10
    log.at_end = asyncio.Event()
    for _ in range(1000):
        await publisher.step()
        if log.at_end.is_set():
            break
    await publisher.step()


def _rebalance(log: FaultyLog, lost: set[int], then: str) -> None:
    (reader,) = [each for each in log.readers if each.topic == "signals"]
    wanted = {"lose one": {0}, "lose all": {0, 1}, "get back": set[int]()}.get(then)
    if wanted is None:
        return
    for partition in wanted - lost:
        reader.revoke(partition)
    for partition in lost - wanted:
        reader.assign(partition)
    lost.clear()
    lost |= wanted


@given(scripts(), st.lists(st.integers(1, 60), max_size=5), st.integers(1, 40), st.booleans())
@settings(deadline=None, max_examples=examples(100))
def test_what_enters_is_what_has_settled_whatever_order_partitions_are_read_in_and_whatever_crashes(
    script: list[Step], crashes: list[int], most: int, rebalances: bool
) -> None:
    log, publisher = asyncio.run(walk(script, crashes, most=most, rebalances=rebalances))

    expected = defined(log, SHORT, settle=SETTLE, passed=log.clock.now)
    assert same(held(publisher.exporter._drops), expected)
