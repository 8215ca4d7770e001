"""A record on disk: a head, then headers, key and value, cut into pieces of one LMDB page each.

LMDB stores a value above half a page on adjacent pages of its own. On a fragmented map the search for adjacent pages
is slow, and fails long before the map is full. A piece of exactly one page fits any free page, so every page that was
trimmed can be used again, whatever the sizes. It costs little more than whole values (docs/decisions/010).

    key    offset (8 bytes, big-endian), number of the piece (2 bytes)
    value  time (float64), lengths of value, key, headers (3 x uint32), headers (msgpack), key, value
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import lmdb
import msgspec

from collector.log.port import Headers, Position, Record

_HEAD = struct.Struct("<dIII")
_KEY = struct.Struct(">QH")
_TIME = struct.Struct("<d")
_PAGE_HEADER = 16
_INLINE = 2022
"""A piece up to this size shares its page with others (LMDB's node limit at 4 KiB pages, with our keys)."""
_NODE = 20
"""What LMDB adds to a shared piece: node header, slot and key."""

_encode_headers = msgspec.msgpack.Encoder().encode
_decode_headers = msgspec.msgpack.Decoder(Headers).decode

Piece = tuple[bytes, "bytes | memoryview"]


def piece_key(offset: int, piece: int = 0) -> bytes:
    """The key of one piece of the record at `offset`."""
    return _KEY.pack(offset, piece)


def offset_of(key: bytes | memoryview) -> int:
    """The offset that a piece belongs to."""
    return int.from_bytes(key[:8], "big")


def time_of(first: bytes | memoryview) -> float:
    """The time of the record whose first piece this is."""
    return _TIME.unpack_from(first)[0]


def pieces(
    offset: int, *, time: float, key: bytes, value: bytes, headers: Headers, page: int
) -> Iterator[Piece]:
    """The keys and values to be stored, in order. `page`: LMDB's page size."""
    packed = _encode_headers(headers) if headers else b""
    head = b"".join((_HEAD.pack(time, len(value), len(key), len(packed)), packed, key))
    size = page - _PAGE_HEADER
    space = max(size - len(head), 0)
    first = b"".join((head, memoryview(value)[:space]))
    if len(first) > size:  # headers and key alone need more than a page
        first, value, space = first[:size], first[size:] + value, 0
    yield _KEY.pack(offset, 0), first
    rest = memoryview(value)
    for number, start in enumerate(range(space, len(value), size), 1):
        yield _KEY.pack(offset, number), rest[start : start + size]


def footprint(size: int, *, page: int) -> int:
    """Bytes that a record of `size` bytes takes on disk, rounded up."""
    whole, rest = divmod(size + _HEAD.size, page - _PAGE_HEADER)
    return whole * page + (page if rest > _INLINE else rest + _NODE)


def read_record(cursor: lmdb.Cursor[memoryview], topic: str, partition: int) -> tuple[Record, bool]:
    """The record whose first piece the cursor stands at; it moves on. False: nothing follows."""
    offset = offset_of(cursor.key())
    parts = [cursor.value()]
    time, of_value, of_key, of_headers = _HEAD.unpack_from(parts[0])
    missing = _HEAD.size + of_value + of_key + of_headers - len(parts[0])
    while missing > 0 and cursor.next():
        parts.append(cursor.value())
        missing -= len(parts[-1])
    start = _HEAD.size + of_headers + of_key
    if start > len(parts[0]):
        parts = [memoryview(b"".join(parts))]
    first = parts[0]
    record = Record(
        position=Position(topic, partition, offset),
        key=bytes(first[start - of_key : start]),
        value=b"".join((first[start:], *parts[1:])),
        time=time,
        headers=_decode_headers(first[_HEAD.size : start - of_key]) if of_headers else (),
    )
    return record, cursor.next()
