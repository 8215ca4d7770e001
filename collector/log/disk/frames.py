"""How a record stands in LMDB: a head, then headers, key and value, cut into pieces of one page each.

LMDB stores a value above half a page on adjacent pages of its own. On a fragmented map the search for adjacent pages is
slow, and fails long before the map is full. A piece of exactly one page fits any free page, so every page that was
trimmed can be used again, whatever the sizes. It costs little more than whole values (docs/decisions/010).

    key    offset (8 bytes, big-endian), number of the piece (2 bytes)
    value  time (float64), lengths of value, key, headers (3 x uint32), CRC-32 (uint32), headers (msgpack), key, value

The highest bit in the length of the headers says that there is a CRC; records of versions before it have none. It is
taken over the key of the first piece, the fields before it and all that follows, so that damage anywhere in a record
is seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

import lmdb
import msgspec

from collector.errors import Undecodable
from collector.log.port import Headers, Position, Record

_DOUBLE = struct.Struct("<d")
_HEAD = struct.Struct("<dIII")
_CRC = struct.Struct("<I")
_AT_ONCE = 4096
"""Bytes: for more than 5 KiB zlib gives Python's lock away, and has to wait for it after each record."""
_CHECKED = 1 << 31
_KEY = struct.Struct(">QH")
_PAGE_HEADER = 16
_INLINE = 2022
"""A piece up to this size shares its page with others (LMDB's node limit at 4 KiB pages, with our keys)."""
_NODE = 20
"""What LMDB adds to a shared piece: node header, slot and key."""
_LARGEST = 64 << 20
"""Bytes of a record that was ever written, three times over: a head that says more is damaged."""

_encode = msgspec.msgpack.Encoder().encode
_decode_headers = msgspec.msgpack.Decoder(Headers).decode

Piece = tuple[bytes, "bytes | memoryview"]


def piece_key(offset: int, piece: int = 0) -> bytes:
    """The key of one piece of the record at `offset`."""
    return _KEY.pack(offset, piece)


def offset_of(key: bytes | memoryview) -> int:
    """The offset that a piece belongs to."""
    return int.from_bytes(key[:8], "big")


def time_of(first: bytes | memoryview) -> float:
    """The time of the record whose first piece this is; 0 of a damaged one."""
    return _DOUBLE.unpack_from(first)[0] if len(first) >= _DOUBLE.size else 0.0


def pieces(
    offset: int, *, time: float, key: bytes, value: bytes, headers: Headers, page: int
) -> Iterator[Piece]:
    """The keys and values to be stored, in order. `page`: LMDB's page size."""
    packed = _encode(headers) if headers else b""
    at, beside = _KEY.pack(offset, 0), packed + key
    fields = _HEAD.pack(time, len(value), len(key), len(packed) | _CHECKED)
    head = fields + _CRC.pack(_crc(at + fields + beside, value)) + beside
    size = page - _PAGE_HEADER
    space = max(size - len(head), 0)
    first = b"".join((head, memoryview(value)[:space]))
    if len(first) > size:  # headers and key alone need more than a page
        first, value, space = first[:size], first[size:] + value, 0
    yield at, first
    rest = memoryview(value)
    for number, start in enumerate(range(space, len(value), size), 1):
        yield _KEY.pack(offset, number), rest[start : start + size]


def footprint(size: int, *, page: int) -> int:
    """Bytes that a record of `size` bytes takes on disk, rounded up."""
    whole, rest = divmod(size + _HEAD.size + _CRC.size, page - _PAGE_HEADER)
    return whole * page + (page if rest > _INLINE else rest + _NODE)


def read_record(cursor: lmdb.Cursor[memoryview], topic: str, partition: int) -> tuple[Record, bool]:
    """The record whose first piece the cursor stands at; it moves on. False: nothing follows.

    Raises:
        Undecodable: the record is damaged. The cursor stands somewhere in it or at its end.
    """
    offset = offset_of(cursor.key())
    position = Position(topic, partition, offset)
    try:
        return _read(cursor, position)
    except (struct.error, msgspec.DecodeError) as error:
        raise Undecodable(f"it is damaged: {error}") from error


def _read(cursor: lmdb.Cursor[memoryview], position: Position) -> tuple[Record, bool]:
    head = cursor.value()
    time, of_value, of_key, last = _HEAD.unpack_from(head)
    of_headers, checked = last & ~_CHECKED, last & _CHECKED
    begin = _HEAD.size + (_CRC.size if checked else 0)
    start = begin + of_headers + of_key
    parts, alive = _parts(cursor, start + of_value)
    if start > len(head):
        parts = [memoryview(b"".join(parts))]
    first = parts[0]
    beside = bytes(first[begin:start])
    value = b"".join((first[start:], *parts[1:]))
    if checked:
        (crc,) = _CRC.unpack_from(first, _HEAD.size)
        fields = bytes(first[: _HEAD.size])
        if crc != _crc(_KEY.pack(position.offset, 0) + fields + beside, value):
            raise Undecodable("it is damaged: its CRC is another one")
    record = Record(
        position=position,
        key=beside[of_headers:],
        value=value,
        time=time,
        headers=_decode_headers(beside[:of_headers]) if of_headers else (),
    )
    return record, alive


def _parts(cursor: lmdb.Cursor[memoryview], size: int) -> tuple[list[memoryview], bool]:
    """Every piece of the record that the cursor stands at, `size` bytes together; whether something follows."""
    if size > _LARGEST:
        raise Undecodable(f"it is damaged: its head says {size} bytes")
    offset = offset_of(cursor.key())
    parts = [cursor.value()]
    missing = size - len(parts[0])
    alive = cursor.next()
    while alive and offset_of(cursor.key()) == offset:
        parts.append(cursor.value())
        missing -= len(parts[-1])
        alive = cursor.next()
    if missing:
        raise Undecodable(f"it is damaged: of {size} bytes, {missing} are missing")
    return parts, alive


def _crc(beside: bytes, value: bytes) -> int:
    crc = crc32(beside)
    if len(value) <= _AT_ONCE:
        return crc32(value, crc)
    view = memoryview(value)
    for start in range(0, len(value), _AT_ONCE):
        crc = crc32(view[start : start + _AT_ONCE], crc)
    return crc
