"""Slots for gRPC messages."""

from __future__ import annotations

import asyncio

import pytest

from collector.receiver import message_slots
from collector.receiver.answers import NoRoom, SlowSender
from collector.receiver.message_slots import MessageSlots


async def stand(slots: MessageSlots, sender: str = "a") -> None:
    async with slots.slot(sender):
        await asyncio.Event().wait()


async def test_a_message_that_does_not_come_gives_its_slot_back() -> None:
    slots = MessageSlots(0.01, slots=2)

    with pytest.raises(SlowSender):
        await stand(slots)

    async with slots.slot("a"):
        pass


async def test_a_call_without_a_slot_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_slots, "WAIT", 0.01)
    slots = MessageSlots(60, slots=2)

    async with slots.slot("a"), slots.slot("b"):
        for sender in ("a", "b", "c"):
            with pytest.raises(NoRoom):
                await stand(slots, sender)


async def test_one_sender_leaves_a_slot_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_slots, "WAIT", 0.01)
    slots = MessageSlots(60, slots=2)

    async with slots.slot("a"):
        with pytest.raises(NoRoom):
            await stand(slots, "a")
        async with slots.slot("b"):
            pass


async def test_a_free_slot_goes_to_the_sender_that_holds_the_fewest() -> None:
    slots = MessageSlots(60, slots=4)
    turns: list[str] = []

    async def take(sender: str) -> None:
        async with slots.slot(sender):
            turns.append(sender)

    async with slots.slot("a"), slots.slot("a"), slots.slot("b"), slots.slot("b"):
        waiting = [asyncio.create_task(take(sender)) for sender in ("a", "a", "c")]
        await asyncio.sleep(0)
        assert turns == []
    await asyncio.wait(waiting)

    assert turns == ["c", "a", "a"]


async def test_a_call_that_ends_while_it_waits_takes_no_slot() -> None:
    slots = MessageSlots(60, slots=2)
    ended = asyncio.create_task(stand(slots))
    late = asyncio.create_task(stand(slots))

    async with slots.slot("a"), slots.slot("b"):
        await asyncio.sleep(0)
        ended.cancel()
        await asyncio.sleep(0)
    # The slot of "a" was given to `late`, which is cancelled before it runs.
    late.cancel()
    await asyncio.wait([ended, late])

    async with slots.slot("a"), slots.slot("b"):
        pass


async def test_who_stands_longest_makes_room_for_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_slots, "PATIENCE", 0.01)
    slots = MessageSlots(60, slots=3)
    lone = asyncio.create_task(stand(slots, "b"))
    await asyncio.sleep(0)
    standing = [asyncio.create_task(stand(slots, "a")) for _ in range(2)]
    await asyncio.sleep(0)

    async with slots.slot("c"):
        with pytest.raises(SlowSender):
            await standing[0]

    assert not lone.done()
    for task in (lone, standing[1]):
        task.cancel()
