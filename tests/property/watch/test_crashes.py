"""Wherever a process that watches crashes: each score and turn enters once, each session is ranked in one history."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from collector.records.standing import AgentLabels, FaultKind
from collector.records.traces import WorkRecord
from collector.watch.ranking.ranking_room import RankingRoom
from evaluators.formulas.fault_watch import FaultState
from evaluators.uses import SessionUses
from tests.support.drift import defined, held, same
from tests.support.examples import examples
from tests.support.fault_watches import Watcher, record_of, used, work
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.publisher import SHORT, Publisher
from tests.support.ranking import a_session, append, make_room, published
from tests.support.signals import new, signal

SETTLE = 20.0
PARTITIONS = 2


class Process(Protocol):
    async def step(self) -> object: ...


P = TypeVar("P", bound=Process)
S = TypeVar("S")


async def lived(
    log: FaultyLog,
    start: Callable[[], P],
    script: Iterable[S],
    act: Callable[[S, P], None],
    crashes: Sequence[int],
    polls: int = 3,
) -> P:
    """The process after the script, each one before it crashed at the next of these steps."""
    left = [*crashes]

    def restarted() -> P:
        log.restart(left.pop(0) if left else None)
        return start()

    process = restarted()
    for step in script:
        act(step, process)
        for _ in range(polls):
            try:
                await process.step()
            except Crash:
                process = restarted()
    if log._crashed:
        left.clear()
        process = restarted()
    log.crash_at = None
    return process


async def read_to_end(log: FaultyLog, process: Process) -> None:
    """Log time passes until all has settled."""
    log.clock.now += SETTLE + 10
    log.at_end = asyncio.Event()
    for _ in range(1000):
        await process.step()
        if log.at_end.is_set():
            break
    await process.step()


@dataclass(frozen=True)
class Step:
    signals: tuple[tuple[Signal, bool], ...]
    """Each with whether counters count it."""
    wait: float
    """Seconds after them."""
    then: str
    """lose one partition, lose all, get them back, or nothing."""


@st.composite
def scores(draw: st.DrawFn) -> list[Step]:
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


async def published_scores(
    script: list[Step], crashes: Sequence[int], *, most: int, rebalances: bool
) -> tuple[FaultyLog, Publisher]:
    """The exporter after the script; a poll reads `most`."""
    log = FaultyLog(partitions=PARTITIONS, atomic=False)
    lost: set[int] = set()

    def start() -> Publisher:
        lost.clear()
        publisher = Publisher(log=log, drops=SHORT, limits=AgentWindow(settle=SETTLE))
        publisher.exporter._max_records = most
        return publisher

    def act(step: Step, publisher: Publisher) -> None:
        for each, first in step.signals:
            log._write([new(each, first=first)], ())
        if rebalances and log.readers and publisher.joined:
            _rebalance(log, lost, step.then)
        # All waits together are less than the time for which log time waits for a partition.
        log.clock.now += min(step.wait, 10.0) if rebalances else step.wait

    publisher = await lived(log, start, script, act, crashes)
    if not publisher.joined:
        await publisher.step()
    _rebalance(log, lost, "get back")
    await read_to_end(log, publisher)
    return log, publisher


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


@given(scores(), st.lists(st.integers(1, 60), max_size=5), st.integers(1, 40), st.booleans())
@settings(deadline=None, max_examples=examples(100))
def test_what_enters_is_what_has_settled_whatever_order_partitions_are_read_in_and_whatever_crashes(
    script: list[Step], crashes: list[int], most: int, rebalances: bool
) -> None:
    log, publisher = asyncio.run(
        published_scores(script, crashes, most=most, rebalances=rebalances)
    )

    expected = defined(log, SHORT, settle=SETTLE, passed=log.clock.now)
    assert same(held(publisher.exporter._drops), expected)


USES = (
    used(slowest=1.0),
    used(failed=True, error="TimeoutError", slowest=5.0),
    used("book", empty=True),
    SessionUses(model_failed=True, no_answer=False),
)
Turns = list[tuple[list[WorkRecord], float]]
Watches = dict[tuple[AgentLabels, FaultKind, str], FaultState]


@st.composite
def turns(draw: st.DrawFn) -> Turns:
    """Records of sessions of two agents, each some with the seconds after them."""
    script: Turns = []
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


async def watched(
    script: Turns, crashes: Sequence[int] = (), again: Random | None = None
) -> tuple[Watches, Watches]:
    """The watches after the script, and those of a process that starts after it.

    `again`: all records are written once more in this order before the second one starts.
    """
    log = FaultyLog(partitions=PARTITIONS, atomic=False)

    def act(step: tuple[list[WorkRecord], float], _: Watcher) -> None:
        records, wait = step
        log._write([record_of(each) for each in records], ())
        log.clock.now += wait

    watcher = await lived(log, lambda: Watcher(log=log, settle=SETTLE), script, act, crashes)
    await read_to_end(log, watcher)
    first = watches(watcher)
    await watcher.reader.finish()
    if again is not None:
        every = [record_of(each) for records, _ in script for each in records]
        log._write(again.sample(every, len(every)), ())
    later = watcher.successor()
    await read_to_end(log, later)
    return first, watches(later)


def watches(watcher: Watcher) -> Watches:
    return {
        (agent.labels, fault, tool): each.watch.state
        for agent in watcher.faults
        for (fault, tool), each in agent._watches.items()
    }


@settings(deadline=None, max_examples=examples(60))
@given(turns(), st.lists(st.integers(0, 30), max_size=4))
def test_a_crash_anywhere_changes_no_watch(script: Turns, crashes: list[int]) -> None:
    quiet, _ = asyncio.run(watched(script))

    first, later = asyncio.run(watched(script, crashes))

    assert first == later == quiet


@settings(deadline=None, max_examples=examples(60))
@given(turns(), st.randoms(use_true_random=False))
def test_a_replay_in_any_order_enters_nothing_again(script: Turns, order: Random) -> None:
    first, later = asyncio.run(watched(script, again=order))

    assert later == first


Ranked = list[list[tuple[WorkRecord, int]]]


@st.composite
def rankings(draw: st.DrawFn) -> Ranked:
    """Sessions that change, close and are opened again, with their partitions, some at once."""
    script: Ranked = []
    revision = 0
    for _ in range(draw(st.integers(1, 4))):
        some: list[tuple[WorkRecord, int]] = []
        for _ in range(draw(st.integers(1, 9))):
            revision += 1
            number = draw(st.integers(0, 24))
            record = a_session(
                f"s-{number}",
                draw(st.integers(1, 30)),
                revision=revision,
                digest=str(revision),
                closed=draw(st.sampled_from(["idle", "idle", None])),
                task_id=draw(st.sampled_from([None, "t-1", "t-2"])),
                writes=draw(st.sampled_from([(), (1,), (1, 2)])),
            )
            some.append((record, number % 2))
        script.append(some)
    return script


async def ranked(script: Ranked, crashes: list[int], *, partitions: int) -> FaultyLog:
    """The log after the script, with sessions before it so that what comes is ranked."""
    log = FaultyLog(partitions=partitions, atomic=False)
    for number in range(12):
        append(log, a_session(f"warm-{number}", number))

    def start() -> RankingRoom:
        room = make_room(log)
        room.join()
        return room

    def act(some: list[tuple[WorkRecord, int]], _: RankingRoom) -> None:
        for record, partition in some:
            append(log, record, partition % partitions)

    await read_to_end(log, await lived(log, start, script, act, crashes, polls=4))
    return log


@given(rankings(), st.lists(st.integers(1, 60), max_size=5))
@settings(deadline=None, max_examples=examples(60))
def test_a_crash_at_any_step_changes_no_signal(script: Ranked, crashes: list[int]) -> None:
    steady = asyncio.run(ranked(script, [], partitions=1))
    crashed = asyncio.run(ranked(script, crashes, partitions=1))

    assert {each.id: each for each in published(crashed)} == {
        each.id: each for each in published(steady)
    }


@given(rankings(), st.lists(st.integers(1, 60), max_size=5))
@settings(deadline=None, max_examples=examples(60))
def test_over_several_partitions_each_closing_is_ranked_in_one_history(
    script: Ranked, crashes: list[int]
) -> None:
    log = asyncio.run(ranked(script, crashes, partitions=2))

    found: defaultdict[tuple[str, int, str], set[str]] = defaultdict(set)
    for each in published(log):
        found[each.session_id, each.revision, each.evaluator].add(each.id)
    closed = {(r.session_id, r.revision) for some in script for r, _ in some if r.closed}
    assert closed <= {(session, revision) for session, revision, _ in found}
    assert all(len(ids) == 1 for ids in found.values())
