"""What workers score: it comes in the order in which it began, until something takes long."""

from __future__ import annotations

import asyncio

import pytest

from collector.log.port import TRACES, Position, Record
from collector.scoring.backlog import Waiting
from collector.scoring.under_way import UnderWay

AT_ONCE = 0.0


def waiting(number: int) -> Waiting:
    """A record of partition 0 or 1."""
    position = Position(TRACES, number % 2, number)
    return Waiting(Record(position=position, time=0.0, key=b"s", value=b""), number)


class Stand:
    """Records 0, 1, 2..., each scored once it is told so."""

    def __init__(self, count: int) -> None:
        self.under_way = UnderWay[int]()
        self._gates = [asyncio.Event() for _ in range(count)]
        self.ended: list[int] = []
        for number in range(count):
            self.begin(number)

    def begin(self, number: int) -> None:
        self.under_way.begin(waiting(number), self._scored(number))

    async def _scored(self, number: int) -> int:
        try:
            await self._gates[number].wait()
        finally:
            self.ended.append(number)
        return number

    async def finish(self, *numbers: int) -> None:
        for number in numbers:
            self._gates[number].set()
        for _ in range(3):
            await asyncio.sleep(0)

    async def come(self, within: float | None = AT_ONCE) -> list[int]:
        return [number for _, number in await self.under_way.come(within)]


async def test_the_first_ones_come_as_far_as_they_have_come() -> None:
    stand = Stand(4)
    await stand.finish(0, 1, 3)

    assert await stand.come() == [0, 1]
    assert len(stand.under_way) == 2
    assert not stand.under_way.may_be_passed
    await stand.under_way.cancel()


async def test_a_wait_ends_with_the_first_one() -> None:
    stand = Stand(2)
    asyncio.get_running_loop().call_soon(stand._gates[0].set)

    assert await stand.come(within=None) == [0]
    await stand.under_way.cancel()


async def test_one_that_takes_long_is_passed_by_the_others() -> None:
    stand = Stand(3)
    assert await stand.come() == []
    assert stand.under_way.may_be_passed
    await stand.finish(2)

    assert await stand.come() == [2]
    assert stand.under_way.may_be_passed
    await stand.under_way.cancel()


async def test_nothing_is_passed_any_more_once_all_that_were_there_have_come() -> None:
    stand = Stand(2)
    stand._gates.append(asyncio.Event())
    assert await stand.come() == []
    stand.begin(2)
    await stand.finish(0, 1)

    assert await stand.come() == [0, 1]
    assert not stand.under_way.may_be_passed
    assert len(stand.under_way) == 1
    await stand.under_way.cancel()


async def test_what_is_cancelled_has_ended_and_is_gone() -> None:
    stand = Stand(4)
    for _ in range(3):
        await asyncio.sleep(0)

    await stand.under_way.cancel(lambda each: each.record.position.partition == 1)

    assert stand.ended == [1, 3]
    assert len(stand.under_way) == 2
    await stand.finish(0, 2)
    assert await stand.come() == [0, 2]


async def test_a_fault_of_scoring_is_raised_and_what_is_left_can_be_cancelled() -> None:
    stand = Stand(1)

    async def fault() -> int:
        raise ZeroDivisionError

    stand.under_way.begin(waiting(9), fault())
    await stand.finish(0)

    with pytest.raises(ZeroDivisionError):
        await stand.come()
    await stand.under_way.cancel()
    assert len(stand.under_way) == 0
