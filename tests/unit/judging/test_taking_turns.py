"""Services take turns with the judge, and the room's rules of order and crash hold all the same."""

from collections.abc import Iterable

import pytest

from collector.config.tree import BudgetConfig, JudgeConfig
from collector.judging import dispatcher
from collector.log.port import TRACES
from collector.records.sessions import session_key
from tests.support.eventually import eventually
from tests.support.judging_stand import NOW, Stand, turn
from tests.support.ticking import SetClock

ONE = JudgeConfig(model="m", concurrency=1)
SLOW = JudgeConfig(model="m", concurrency=1, max_lag=600.0, budget=BudgetConfig(calls_per_minute=1))


def put(stand: Stand, service: str, numbers: Iterable[int]) -> None:
    stand.put(*map(turn, numbers), key=session_key(service, "s"))


def services(stand: Stand) -> list[str]:
    return [job.service for job in stand.judges.jobs]


def verdicts(stand: Stand) -> set[str]:
    return {each.subject for each in stand.verdicts}


def ids(numbers: Iterable[int]) -> set[str]:
    return {turn(number).trace_id for number in numbers}


async def test_a_service_that_comes_after_many_traces_of_another_has_its_turn_soon() -> None:
    stand = Stand(config=ONE)
    put(stand, "greedy", range(40))
    put(stand, "modest", range(40, 42))
    await stand.drain()

    assert services(stand)[:5].count("modest") == 2
    assert verdicts(stand) == ids(range(42))


async def test_a_service_above_its_share_begins_nothing_while_another_waits() -> None:
    stand = Stand(config=ONE)
    for _ in range(30):
        assert stand.budget.reserve(NOW, 0.0, "greedy")
    put(stand, "greedy", range(3))
    put(stand, "modest", range(3, 6))
    await stand.drain()

    # The first came alone; then the one below its share goes first, and nothing starves.
    assert services(stand) == ["greedy", *["modest"] * 3, *["greedy"] * 2]


async def test_no_commit_passes_a_subject_that_waits() -> None:
    """A crash while one service's verdicts are out of turn: every subject has its verdict after the next start."""
    first = Stand(config=ONE)
    first.judges.answers = 3
    put(first, "greedy", range(5))
    put(first, "modest", range(5, 7))
    async with first.running():
        await first.judges.has(4)
    assert len(first.verdicts) == 3
    assert "modest" in services(first)[:3]
    committed = first.log.committed("judging", TRACES, 0).offset or 0
    waiting = ids(range(7)) - verdicts(first)
    oldest = min(int(each, 16) for each in waiting)
    assert committed <= oldest

    second = Stand(first.log)
    await second.drain()
    assert verdicts(second) == ids(range(7))
    assert len(second.verdicts) == 7


def is_done_with(stand: Stand, count: int) -> bool:
    """Whether so many records are committed, a second of the log's clock later."""
    assert isinstance(stand.clock, SetClock)
    stand.clock.now += 1
    return (stand.log.committed("judging", TRACES, 0).offset or 0) >= count


async def test_what_comes_too_late_while_it_waits_is_not_asked_for() -> None:
    stand = Stand(config=ONE)
    assert isinstance(stand.clock, SetClock)
    stand.judges.answers = 0
    put(stand, "bot", range(4))
    async with stand.running():
        await stand.judges.has(1)
        stand.clock.now += ONE.max_lag
        await stand.judges.answer()
        await eventually(lambda: is_done_with(stand, 4))
    assert len(stand.judges.jobs) == 1


@pytest.mark.parametrize("floods", [1, 30])
async def test_a_flood_beyond_what_can_be_judged_in_time_holds_no_other_back(
    monkeypatch: pytest.MonkeyPatch, floods: int
) -> None:
    """Of more than the budget allows within `judge.max_lag` the oldest are passed over, live."""
    monkeypatch.setattr(dispatcher, "READ_AHEAD", 20)
    stand = Stand(config=SLOW)
    stand.judges.answers = 1
    put(stand, "greedy", range(20 * floods))
    put(stand, "modest", [10_000])
    async with stand.running():
        await stand.judges.has(2)
        await eventually(lambda: "modest" in stand.budget.waiting)
        for jobs in (3, 4):
            await stand.judges.answer()
            await stand.judges.has(jobs)
    assert "modest" in services(stand)


async def test_offline_everything_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "READ_AHEAD", 20)
    stand = Stand(config=SLOW)
    put(stand, "bot", range(100))
    await stand.drain()

    assert verdicts(stand) == ids(range(100))
    assert stand.judges.compared[-1] == ["answer 96", "answer 97", "answer 98"], "out of the log"


async def test_what_waits_of_a_partition_that_is_taken_away_is_not_judged_here() -> None:
    stand = Stand(config=ONE)
    stand.judges.answers = 0
    put(stand, "bot", range(3))
    async with stand.running():
        await stand.judges.has(1)
        await stand.room.revoke(0)
        await stand.judges.answer()
        await eventually(lambda: len(stand.verdicts) == 1)
        assert not stand.budget.waiting
    assert len(stand.judges.jobs) == 1
