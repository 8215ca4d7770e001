"""Conversations that repeat: each model call is sent the messages of the calls before it once more.

A recorded message is compared as bytes before it is parsed, so that one trace parses each of its messages once, however
many histories hold it: those that only grow, those from which an agent dropped messages, and the answer that becomes
part of the next history.
"""

from __future__ import annotations

import msgspec

from evaluators.dialects.content.convention_messages import read_convention
from evaluators.dialects.content.message_model import Message
from evaluators.dialects.content.messages import read_plain
from evaluators.dialects.decoding.room import Room, this_room

_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)


def read_history(text: str) -> tuple[Message, ...] | None:
    """The messages in a JSON list of nothing but plain messages; None: read the text as any other value.

    The same as `read_messages` would give. None also outside a trace, where nothing is remembered.
    """
    room = this_room()
    if room is None or text[:1] != "[":
        return None
    before = room.left
    try:
        messages = _read_items(_decode_items(text), room)
    except _ERRORS:
        messages = None
    if messages is None:
        room.left = before  # the text is read once more
        return None
    return tuple(messages)


def _read_items(items: list[msgspec.Raw], room: Room) -> list[Message] | None:
    known = room.messages
    found: list[Message] = []
    for item in items:
        raw = bytes(item)
        messages = known.get(raw)
        if messages is None:
            left = room.left
            plain = read_convention(raw)
            if plain is None:
                room.left = left
                messages = read_plain(_decode(raw))
            else:
                messages = [plain]
            if messages is None:
                return None
            if room.left == left >= 0:  # what takes room is charged each time
                known[raw] = messages
        found += messages
    return found
