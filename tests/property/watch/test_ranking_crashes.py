"""Wherever the ranking room crashes, every session is ranked, in one history, and nothing is said twice otherwise."""

import asyncio
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.traces import WorkRecord
from collector.watch.ranking.ranking_room import RankingRoom
from tests.support.examples import examples
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.ranking import a_session, append, make_room, published


@st.composite
def scripts(draw: st.DrawFn) -> list[list[tuple[WorkRecord, int]]]:
    """Sessions that change, close and are opened again, with their partitions, some at once."""
    script: list[list[tuple[WorkRecord, int]]] = []
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


async def ranked(
    script: list[list[tuple[WorkRecord, int]]], crashes: list[int], *, partitions: int
) -> FaultyLog:
    """The log after a walk in which each process crashes at the next of these steps, the last one never."""
    log = FaultyLog(partitions=partitions, atomic=False)
    left = [*crashes]

    def start() -> RankingRoom:
        log.restart(left.pop(0) if left else None)
        room = make_room(log)
        room.join()
        return room

    for number in range(12):  # warm, so that what comes is ranked
        append(log, a_session(f"warm-{number}", number))
    room = start()
    for some in script:
        for record, partition in some:
            append(log, record, partition % partitions)
        for _ in range(4):
            try:
                await room.step()
            except Crash:
                room = start()
    left.clear()
    log.at_end = asyncio.Event()
    room = start()
    while not log.at_end.is_set():
        await room.step()
    return log


@given(scripts(), st.lists(st.integers(1, 60), max_size=5))
@settings(deadline=None, max_examples=examples(60))
def test_a_crash_at_any_step_changes_no_signal(
    script: list[list[tuple[WorkRecord, int]]], crashes: list[int]
) -> None:
    async def both() -> tuple[FaultyLog, FaultyLog]:
        return (
            await ranked(script, [], partitions=1),
            await ranked(script, crashes, partitions=1),
        )

    steady, crashed = asyncio.run(both())

    assert {each.id: each for each in published(crashed)} == {
        each.id: each for each in published(steady)
    }


@given(scripts(), st.lists(st.integers(1, 60), max_size=5))
@settings(deadline=None, max_examples=examples(60))
def test_over_several_partitions_each_closing_is_ranked_in_one_history(
    script: list[list[tuple[WorkRecord, int]]], crashes: list[int]
) -> None:
    log = asyncio.run(ranked(script, crashes, partitions=2))

    found: defaultdict[tuple[str, int, str], set[str]] = defaultdict(set)
    for each in published(log):
        found[each.session_id, each.revision, each.evaluator].add(each.id)
    closed = {(r.session_id, r.revision) for some in script for r, _ in some if r.closed}
    assert closed <= {(session, revision) for session, revision, _ in found}
    assert all(len(ids) == 1 for ids in found.values())
