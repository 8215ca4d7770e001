"""How a record is in LMDB: a head, then headers, key and value, cut into pieces of one page each.

LMDB stores a value above half a page on adjacent pages of its own. On a fragmented map the search for adjacent pages is
slow, and fails long before the map is full. A piece of exactly one page fits any free page, so every page that was
trimmed can be used again, whatever the sizes. It costs little more than whole values (docs/decisions/010).

    key    offset (8 bytes, big-endian), number of the piece (2 bytes)
    first  time (float64), lengths of value, key, headers (3 x uint32), CRC-32 (uint32), [count (uint32),]
           headers (msgpack), key, value
    others CRC-32 (uint32), more of the value

Each piece has a CRC of its own, so that a range of the value can be read, and checked, without the rest. It is taken
over the piece's key and all of the piece but itself, those of later pieces going on from the first one's: damage
anywhere in a record is seen, also a piece that belongs to another.

The two highest bits in the length of the headers are set: they name this form. The next bit says that there is a
count: a record without one takes one offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

import lmdb
import msgspec
from isal import isal_zlib
from lmdb import _Database as Database

from collector.base.errors import Undecodable
from collector.log.port import MAX_COUNT, Headers, Position, Range, Record

crc32: Callable[..., int] = cast(Any, isal_zlib).crc32
"""The same number as zlib's, for a fifth of the time."""
_DOUBLE = struct.Struct("<d")
_HEAD = struct.Struct("<dIII")
_CRC = struct.Struct("<I")
_COUNT = struct.Struct("<I")
_BESIDE = _HEAD.size + _CRC.size
"""Where count, headers and key begin in a first piece."""
_AT_ONCE = 4096  # bytes: for more than 5 KiB zlib gives Python's lock away, and has to wait for it after each record
_FORM = 3 << 30
_COUNTED = 1 << 29
_FLAGS = _FORM | _COUNTED
_KEY = struct.Struct(">QH")
_PAGE_HEADER = 16
_INLINE = 2022
"""A piece up to this size shares its page with others (LMDB's node limit at 4 KiB pages, with our keys)."""
_NODE = 20  # what LMDB adds to a shared piece: node header, slot and key
_LARGEST = 64 << 20
"""Bytes of a record that was ever written, three times over: a head that says more is damaged."""

_WRONG_CRC = "it is damaged: its CRC does not match"

_encode = msgspec.msgpack.Encoder().encode
_decode_headers = msgspec.msgpack.Decoder(Headers).decode

Piece = tuple[bytes, "bytes | memoryview"]


def piece_key(offset: int, piece: int = 0) -> bytes:
    return _KEY.pack(offset, piece)


def offset_of(key: bytes | memoryview) -> int:
    return int.from_bytes(key[:8], "big")


def time_of(first: bytes | memoryview) -> float:
    """The time of the record whose first piece this is; 0 of a damaged one."""
    return _DOUBLE.unpack_from(first)[0] if len(first) >= _DOUBLE.size else 0.0


def count_of(first: bytes | memoryview) -> int:
    """How many offsets the record takes whose first piece this is; 1 of one that is seen to be damaged."""
    if len(first) < _BESIDE + _COUNT.size or not _HEAD.unpack_from(first)[3] & _COUNTED:
        return 1
    count = _COUNT.unpack_from(first, _BESIDE)[0]
    return count if 1 < count <= MAX_COUNT else 1


def pieces(record: Record, *, page: int) -> list[Piece]:
    """The keys and values to be stored, in order. `page`: LMDB's page size."""
    offset, value, count = record.position.offset, record.value, record.count
    packed = _encode(record.headers) if record.headers else b""
    at, beside = _KEY.pack(offset, 0), packed + record.key
    flags = _FORM
    if count > 1:
        flags, beside = flags | _COUNTED, _COUNT.pack(count) + beside
    fields = _HEAD.pack(record.time, len(value), len(record.key), len(packed) | flags)
    size = page - _PAGE_HEADER
    crc_of = crc32 if size <= _AT_ONCE else _crc
    space = size - _BESIDE - len(beside)
    if len(value) <= space:  # most records are one piece
        crc = crc_of(value, crc32(at + fields + beside))
        return [(at, b"".join((fields, _CRC.pack(crc), beside, value)))]
    rest = memoryview(value)
    if space < 0:  # headers and key alone need more than a page
        beside, rest, space = beside[:space], memoryview(beside[space:] + value), 0
    of_first = crc_of(rest[:space], crc32(at + fields + beside))
    made: list[Piece] = [(at, b"".join((fields, _CRC.pack(of_first), beside, rest[:space])))]
    step = size - _CRC.size
    for number, start in enumerate(range(space, len(rest), step), 1):
        at, part = _KEY.pack(offset, number), rest[start : start + step]
        made.append((at, b"".join((_CRC.pack(crc_of(part, crc32(at, of_first))), part))))
    return made


def footprint(size: int, *, page: int) -> int:
    """Bytes that a record of `size` bytes takes on disk, rounded up."""
    whole, rest = divmod(size + _BESIDE, page - _PAGE_HEADER - _CRC.size)
    return whole * page + (page if rest > _INLINE - _CRC.size else rest + _NODE + _CRC.size)


def read_record(cursor: lmdb.Cursor[memoryview], topic: str, partition: int) -> tuple[Record, bool]:
    """The record whose first piece the cursor is at; it moves on. False: nothing follows.

    Raises Undecodable: the record is damaged. The cursor is somewhere in it or at its end.
    """
    offset = offset_of(cursor.key())
    position = Position(topic, partition, offset)
    try:
        return _read(cursor, position)
    except (struct.error, msgspec.DecodeError) as error:
        raise Undecodable(f"it is damaged: {error}") from error


def read_values(
    txn: lmdb.Transaction[memoryview],
    databases: Callable[[int], Database],
    ranges: Iterable[Range],
    pass_over: Callable[[int, int, Undecodable], None] | None = None,
) -> list[bytes | None]:
    """Each of these ranges; None: there is no such record, it is damaged there, or not as long.

    `databases`: that of a partition. `pass_over` is told the partition and offset of what is damaged.
    """
    found: list[bytes | None] = []
    for partition, offset, start, end in ranges:
        try:
            found.append(read_range(txn.cursor(databases(partition)), offset, start, end))
        except Undecodable as error:
            found.append(None)
            if pass_over is not None:
                pass_over(partition, offset, error)
    return found


def read_range(cursor: lmdb.Cursor[memoryview], offset: int, start: int, end: int) -> bytes | None:
    """The value of the record at `offset` from `start` to below `end`; None: the record does not exist.

    Only the pieces that hold it are read and checked. Raises Undecodable: one of them is damaged, or the value is not
    as long.
    """
    at = piece_key(offset)
    if not cursor.set_key(at):
        return None
    try:
        first = cursor.value()
        head = _Head(first)
        head.check(at, first)
        if not 0 <= start <= end <= head.of_value:
            raise Undecodable(f"it holds {head.of_value} bytes, not those from {start} to {end}")
        start, end = head.start + start, head.start + end
        parts = [first[start:end]]
        number, begin = divmod(max(start - len(first), 0), len(first) - _CRC.size)
        missing = end - max(start, len(first))
        while missing > 0:
            number += 1
            at = _KEY.pack(offset, number)
            if not cursor.set_key(at):
                raise Undecodable(f"it is damaged: piece {number} is missing")
            part = head.checked(at, cursor.value())
            if begin or len(part) > missing:
                part, begin = part[begin : begin + missing], 0
            if not part:
                raise Undecodable(f"it is damaged: piece {number} is cut off")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)
    except struct.error as error:
        raise Undecodable(f"it is damaged: {error}") from error


class _Head:
    __slots__ = ("crc", "of_count", "of_headers", "of_key", "of_value", "start", "time")

    def __init__(self, first: memoryview) -> None:
        self.time, self.of_value, self.of_key, last = _HEAD.unpack_from(first)
        self.of_headers = last & ~_FLAGS
        (self.crc,) = _CRC.unpack_from(first, _HEAD.size)
        self.of_count = _COUNT.size if last & _COUNTED else 0
        self.start = _BESIDE + self.of_count + self.of_headers + self.of_key
        """Where the value begins, or would if the first piece were long enough."""
        if last & _FORM != _FORM:
            raise Undecodable("it is damaged: its form is not known")
        if self.start + self.of_value > _LARGEST:
            raise Undecodable(f"it is damaged: its head says {self.start + self.of_value} bytes")

    def check(self, at: bytes, first: memoryview) -> None:
        beside = min(self.start, len(first))
        seed = crc32(first[_BESIDE:beside], crc32(at + first[: _HEAD.size]))
        if self.crc != _crc(first[beside:], seed):
            raise Undecodable(_WRONG_CRC)

    def checked(self, at: bytes, piece: memoryview) -> memoryview:
        """What a later piece holds, once it was compared with its CRC."""
        part, seed = piece[_CRC.size :], crc32(at, self.crc)
        crc = crc32(part, seed) if len(part) <= _AT_ONCE else _crc(part, seed)
        if _CRC.unpack_from(piece)[0] != crc:
            raise Undecodable(_WRONG_CRC)
        return part


def _read(cursor: lmdb.Cursor[memoryview], position: Position) -> tuple[Record, bool]:
    head = _Head(cursor.value())
    parts, alive = _parts(cursor, head)
    if head.start > len(parts[0]):
        parts = [memoryview(b"".join(parts))]
    first = parts[0]
    beside = bytes(first[_BESIDE : head.start])
    value = b"".join((first[head.start :], *parts[1:]))
    of_headers, named = head.of_headers, beside[head.of_count :]
    record = Record(
        position=position,
        key=named[of_headers:],
        value=value,
        time=head.time,
        headers=_decode_headers(named[:of_headers]) if of_headers else (),
        count=_COUNT.unpack_from(beside)[0] if head.of_count else 1,
    )
    return record, alive


def _parts(cursor: lmdb.Cursor[memoryview], head: _Head) -> tuple[list[memoryview], bool]:
    """What each piece of the record that the cursor is at holds of it; whether something follows."""
    size = head.start + head.of_value
    offset = offset_of(cursor.key())
    parts = [cursor.value()]
    head.check(bytes(cursor.key()), parts[0])
    missing = size - len(parts[0])
    alive = cursor.next()
    while alive and offset_of(cursor.key()) == offset:
        parts.append(head.checked(bytes(cursor.key()), cursor.value()))
        missing -= len(parts[-1])
        alive = cursor.next()
    if missing:
        raise Undecodable(f"it is damaged: of {size} bytes, {missing} are missing")
    return parts, alive


def _crc(part: bytes | memoryview, crc: int) -> int:
    if len(part) <= _AT_ONCE:
        return crc32(part, crc)
    for start in range(0, len(part), _AT_ONCE):
        crc = crc32(part[start : start + _AT_ONCE], crc)
    return crc
