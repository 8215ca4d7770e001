"""Conversations that repeat: each model call is sent the messages of the calls before it once more.

A recorded message is compared as bytes before it is parsed, so that one trace parses each of its messages once, however
many histories hold it: those from which an agent dropped messages, and the answer that becomes part of the next
history. Of a history that only grew, what was added is looked at alone.
"""

import msgspec

from evaluators.dialects.content.convention_messages import read_convention, read_conventions
from evaluators.dialects.content.message_model import Message
from evaluators.dialects.content.messages import read_plain
from evaluators.dialects.decoding.room import Room, this_room

_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_BLANKS = " \t\n\r"
_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)


def read_history(text: str, *, grows: bool) -> tuple[Message, ...] | None:
    """The messages in a JSON list of nothing but plain messages; None: read the text as any other value.

    The same as `read_messages` would give. None also outside a trace, where nothing is remembered. `grows`: whether the
    next such text may begin with this one, as what is sent to a model does.
    """
    room = this_room()
    if room is None or text[:1] != "[":
        return None
    before = room.left
    try:
        messages = _read_growing(text, room) if grows else _read_answer(text, room)
    except _ERRORS:
        messages = None
    if messages is None:
        room.left = before  # the text is read once more
    return messages


def _read_answer(text: str, room: Room) -> tuple[Message, ...] | None:
    left = room.left
    messages = read_conventions(text)
    if messages is None:
        room.left = left
        read = _read_items(_decode_items(text), room)
        return None if read is None else tuple(read)
    if len(messages) == 1 and room.left == left >= 0:
        room.messages[text[1:-1].encode()] = messages[0]  # as the next history has it
    return tuple(messages)


def _read_growing(text: str, room: Room) -> tuple[Message, ...] | None:
    """What the text has in common with the one read before it is not looked at again."""
    left = room.left
    start, known = room.history
    more = _items_after(start, text) if start and text.startswith(start) else None
    if more is None:
        known, more = (), _decode_items(text)
    read = _read_items(more, room)
    if read is None:
        return None
    messages = (*known, *read)
    if text[-1] == "]" and room.left == left >= 0:  # what takes room is charged each time
        room.history = text[:-1], messages
    return messages


def _items_after(start: str, text: str) -> list[msgspec.Raw] | None:
    """The items of a list of which all before `start`'s end are known; None: it does not end between two items."""
    rest = text[len(start) :].lstrip(_BLANKS)
    if rest[:1] == ",":
        return _decode_items(f"[{rest[1:]}") or None
    return [] if rest == "]" else None


def _read_items(items: list[msgspec.Raw], room: Room) -> list[Message] | None:
    known = room.messages
    found: list[Message] = []
    for item in items:
        raw = bytes(item)
        message = known.get(raw)
        if message is not None:
            found.append(message)
            continue
        left = room.left
        message = read_convention(raw)
        if message is None:
            room.left = left
            messages = read_plain(_decode(raw))
            if messages is None:
                return None
            found += messages
            message = messages[0] if len(messages) == 1 else None
        else:
            found.append(message)
        if message is not None and room.left == left >= 0:
            known[raw] = message
    return found
