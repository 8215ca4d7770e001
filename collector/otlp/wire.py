"""Protobuf's wire format, walked field by field."""

from collections.abc import Iterable, Iterator

from collector.base.errors import TooLarge, Undecodable

_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}
"""By wire type, the bytes of a value of fixed size."""
MAX_FIELDS = 1_000_000  # of one request, over every level that is walked
MAX_SPANS = 100_000  # of one request


class RequestBudget:
    """What one request may still cost: an empty field is two bytes to send, and a step in Python to walk."""

    __slots__ = ("left", "spans")

    def __init__(self) -> None:
        self.left = MAX_FIELDS
        self.spans = 0  # spans that were seen so far

    def add_span(self) -> None:
        """One more span. Raises TooLarge: that is too many."""
        self.spans += 1
        if self.spans > MAX_SPANS:
            raise TooLarge(f"the request has more than {MAX_SPANS} spans", items=self.spans)


def fields(
    data: bytes, position: int, end: int, budget: RequestBudget
) -> Iterator[tuple[int, int, int, int]]:
    """Every field of the message in `data[position:end]`: tag, start of the tag, start and end of the value.

    Raises Undecodable: not a message; groups, which proto3 does not have, are not read. Raises TooLarge: the budget is
    used up.
    """
    try:
        while position < end:
            start = position
            tag = data[position]
            position += 1
            if tag >= 128:
                tag, position = varint(data, start)
            kind = tag & 7
            if kind == _LENGTH_DELIMITED:
                size = data[position]
                position += 1
                if size >= 128:
                    more = data[position]
                    if more < 128:
                        size += (more << 7) - 128
                        position += 1
                    else:
                        size, position = varint(data, position - 1)
                value, position = position, position + size
            else:
                value, position = position, _skip(data, position, kind)
            if position > end or tag < 8:
                raise Undecodable("the body is not a protobuf message")
            budget.left -= 1
            if budget.left < 0:
                raise TooLarge(f"the request has more than {MAX_FIELDS} fields", items=budget.spans)
            yield tag, start, value, position
    except IndexError as error:
        raise Undecodable("the body ends within a field") from error


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position`, and where it ends.

    Raises Undecodable: longer than 10 bytes. Raises IndexError: the data end within it.
    """
    number = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    raise Undecodable("a number has more than 10 bytes")


def spliced(
    data: bytes, start: int, end: int, changes: Iterable[tuple[int, int, bytes]]
) -> bytes | None:
    """`data[start:end]` with the bytes between each pair of positions replaced, in order; None: nothing changed."""
    parts: list[bytes] = []
    copied = start
    for begin, stop, changed in changes:
        parts += (data[copied:begin], changed)
        copied = stop
    if not parts:
        return None
    parts.append(data[copied:end])
    return b"".join(parts)


def header(tag: int, size: int) -> bytes:
    """What is before a length-delimited value; `tag` below 128."""
    if size < 128:
        return bytes((tag, size))
    if size < 16_384:
        return bytes((tag, size & 127 | 128, size >> 7))
    out = bytearray((tag,))
    while size >= 128:
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)


def _skip(data: bytes, position: int, kind: int) -> int:
    if kind == 0:
        return varint(data, position)[1]
    if kind in _FIXED:
        return position + _FIXED[kind]
    raise Undecodable("the body holds a field of unknown kind")
