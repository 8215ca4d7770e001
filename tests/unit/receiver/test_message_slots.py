"""Slots for gRPC messages."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from collector.receiver import message_slots
from collector.receiver.answers import NoRoom, SlowSender
from collector.receiver.message_slots import MessageSlots


async def stand(slots: MessageSlots, sender: str = "a") -> None:
    """A message that never ends."""
    await slots.read(sender, asyncio.Event().wait)


@asynccontextmanager
async def slot(slots: MessageSlots, sender: str) -> AsyncGenerator[None]:
    """A message that is read as long as this lasts."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def message() -> None:
        begun.set()
        await ended.wait()

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(slots.read(sender, message))
        starting = tasks.create_task(begun.wait())
        await asyncio.wait([reading, starting], return_when=asyncio.FIRST_COMPLETED)
        yield
        ended.set()


async def test_a_message_that_does_not_come_gives_its_slot_back() -> None:
    slots = MessageSlots(0.01, slots=2)

    with pytest.raises(SlowSender):
        await stand(slots)

    async with slot(slots, "a"):
        pass


async def test_one_sender_leaves_a_slot_for_another_and_without_one_a_call_must_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_slots, "WAIT", 0.01)
    slots = MessageSlots(60, slots=2)

    async with slot(slots, "a"):
        with pytest.raises(NoRoom):
            await stand(slots, "a")
        async with slot(slots, "b"):
            for sender in ("a", "b", "c"):
                with pytest.raises(NoRoom):
                    await stand(slots, sender)


async def test_a_free_slot_goes_to_the_sender_that_holds_the_fewest() -> None:
    slots = MessageSlots(60, slots=4)
    turns: list[str] = []

    async def take(sender: str) -> None:
        async with slot(slots, sender):
            turns.append(sender)

    async with slot(slots, "a"), slot(slots, "a"), slot(slots, "b"), slot(slots, "b"):
        waiting = [asyncio.create_task(take(sender)) for sender in ("a", "a", "c")]
        await asyncio.sleep(0)
        assert turns == []
    await asyncio.wait(waiting)

    assert turns == ["c", "a", "a"]


async def test_a_call_that_ends_while_it_waits_takes_no_slot() -> None:
    slots = MessageSlots(60, slots=2)

    async with slot(slots, "a"), slot(slots, "b"):
        waiting = asyncio.create_task(stand(slots))
        await asyncio.sleep(0)
        waiting.cancel()

    async with slot(slots, "a"), slot(slots, "b"):
        assert waiting.cancelled()


async def test_a_call_that_ends_as_it_gets_its_slot_gives_it_back() -> None:
    class Late(MessageSlots):
        def _grant(self) -> None:
            super()._grant()
            waiting.cancel()

    slots = Late(60, slots=2)

    async with slot(slots, "a"), slot(slots, "b"):
        waiting = asyncio.create_task(stand(slots, "c"))
        await asyncio.sleep(0)
    await asyncio.wait([waiting])

    async with slot(slots, "a"), slot(slots, "b"):
        assert waiting.cancelled()


async def test_who_stands_longest_makes_room_for_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_slots, "PATIENCE", 0.01)
    slots = MessageSlots(60, slots=3)
    lone = asyncio.create_task(stand(slots, "b"))
    await asyncio.sleep(0)
    standing = [asyncio.create_task(stand(slots, "a")) for _ in range(2)]
    await asyncio.sleep(0)

    async with slot(slots, "c"):
        with pytest.raises(SlowSender):
            await standing[0]

    assert not lone.done()
    for task in (lone, standing[1]):
        task.cancel()
