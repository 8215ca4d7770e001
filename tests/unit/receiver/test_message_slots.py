"""Slots for gRPC messages."""

from __future__ import annotations

import asyncio

import pytest

from collector.receiver import message_slots
from collector.receiver.answers import NoRoom, SlowSender
from collector.receiver.message_slots import MessageSlots


async def stand(slots: MessageSlots) -> None:
    async with slots.slot():
        await asyncio.Event().wait()


async def test_a_message_that_does_not_come_gives_its_slot_back() -> None:
    slots = MessageSlots(0.01, slots=1)

    with pytest.raises(SlowSender):
        await stand(slots)

    async with slots.slot():
        pass


async def test_a_call_without_a_slot_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_slots, "WAIT", 0.01)
    slots = MessageSlots(60, slots=1)

    async with slots.slot():
        with pytest.raises(NoRoom):
            await stand(slots)


async def test_who_stands_longest_makes_room_for_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_slots, "PATIENCE", 0.01)
    slots = MessageSlots(60, slots=1)
    standing = asyncio.create_task(stand(slots))
    await asyncio.sleep(0)

    async with slots.slot():
        with pytest.raises(SlowSender):
            await standing
