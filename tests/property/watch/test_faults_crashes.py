"""Wherever the reader of fault watches crashes, and whatever it reads again, each turn enters once, in one order."""

import asyncio
from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.standing import AgentLabels, FaultKind
from collector.records.traces import WorkRecord
from evaluators.formulas.fault_watch import FaultState
from evaluators.uses import SessionUses
from tests.support.examples import examples
from tests.support.fault_watches import Watcher, record_of, used, work
from tests.support.faulty_log import Crash, FaultyLog

SETTLE = 20.0
USES = (
    used(slowest=1.0),
    used(failed=True, error="TimeoutError", slowest=5.0),
    used("book", empty=True),
    SessionUses(model_failed=True, no_answer=False),
)
Watches = dict[tuple[AgentLabels, FaultKind, str], FaultState]


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[list[WorkRecord], float]]:
    """Records of sessions of two agents, each some with the seconds after them."""
    script: list[tuple[list[WorkRecord], float]] = []
    revision = 0
    for _ in range(draw(st.integers(1, 10))):
        some: list[WorkRecord] = []
        for _ in range(draw(st.integers(0, 8))):
            revision += 1
            session = f"s-{draw(st.integers(0, 40))}"
            some.append(
                work(
                    session,
                    draw(st.sampled_from(USES)),
                    agent=draw(st.sampled_from(["planner", "planner", "writer"])),
                    turn=f"t-{draw(st.integers(0, 1))} of {session}",
                    revision=revision,
                    seen=draw(st.sampled_from([0.0, 5.0, -50.0, 1e9])),  # clocks that step
                    revised=draw(st.sampled_from([0, 0, 1])),
                )
            )
        script.append((some, draw(st.sampled_from([0.0, 1.0, 7.0, SETTLE, 30.0]))))
    return script


async def walk(
    script: list[tuple[list[WorkRecord], float]],
    crashes: Sequence[int] = (),
    again: Random | None = None,
) -> tuple[Watches, Watches]:
    """The watches after the script, and those of a process that starts after it.

    `again`: all records are written once more in this order before the second one starts.
    """
    log = FaultyLog(partitions=2, atomic=False)
    left = [*crashes]

    def start(crash_at: int | None) -> Watcher:
        log.restart(crash_at)
        return Watcher(log=log, settle=SETTLE)

    watcher = start(left.pop(0) if left else None)
    for records, wait in script:
        log._write([record_of(each) for each in records], ())
        log.clock.now += wait
        for _ in range(3):
            try:
                await watcher.step()
            except Crash:
                watcher = start(left.pop(0) if left else None)
    if log._crashed:
        watcher = start(None)
    log.crash_at = None
    await _read_to_end(watcher)
    lived = watches(watcher)
    await watcher.reader.finish()
    if again is not None:
        every = [record_of(each) for records, _ in script for each in records]
        log._write(again.sample(every, len(every)), ())
    later = watcher.successor()
    await _read_to_end(later)
    return lived, watches(later)


async def _read_to_end(watcher: Watcher) -> None:
    log = watcher.log
    log.clock.now += SETTLE + 10
    log.at_end = asyncio.Event()
    for _ in range(1000):
        await watcher.step()
        if log.at_end.is_set():
            break
    await watcher.step()


def watches(watcher: Watcher) -> Watches:
    return {
        (agent.labels, fault, tool): each.watch.state
        for agent in watcher.faults
        for (fault, tool), each in agent._watches.items()
    }


@settings(deadline=None, max_examples=examples(60))
@given(scripts(), st.lists(st.integers(0, 30), max_size=4))
def test_a_crash_anywhere_changes_no_watch(
    script: list[tuple[list[WorkRecord], float]], crashes: list[int]
) -> None:
    quiet, _ = asyncio.run(walk(script))

    lived, later = asyncio.run(walk(script, crashes))

    assert lived == later == quiet


@settings(deadline=None, max_examples=examples(60))
@given(scripts(), st.randoms(use_true_random=False))
def test_a_replay_in_any_order_enters_nothing_again(
    script: list[tuple[list[WorkRecord], float]], order: Random
) -> None:
    lived, later = asyncio.run(walk(script, again=order))

    assert later == lived
