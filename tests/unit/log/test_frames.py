"""Records as pieces in LMDB: whatever is damaged in one is seen, and raises one declared error."""

from __future__ import annotations

import random
import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest

from collector.base.errors import Undecodable
from collector.log.disk.frames import (
    piece_key,
    pieces,
    read_range,
    read_record,
)
from collector.log.port import Headers, Position, Record

PAGE = 4096
TIME = 1_790_000_000.25
HEADERS: Headers = (("content-type", b"x" * 20), ("h", b""))
SIZES = [0, 1, 2000, 4055, 4080, 4081, 9000, 50_000]


def stored(
    offset: int, value: bytes, *, key: bytes = b"key", headers: Headers = (), count: int = 1
) -> dict[bytes, bytes]:
    position = Position("spans", 0, offset)
    record = Record(
        position=position, key=key, value=value, time=TIME, headers=headers, count=count
    )
    return {at: bytes(piece) for at, piece in pieces(record, page=PAGE)}


@contextmanager
def cursor_over(folder: Path, content: Mapping[bytes, bytes]) -> Generator[lmdb.Cursor[memoryview]]:
    with lmdb.open(str(folder), map_size=16 << 20) as env:
        with env.begin(write=True) as txn:
            for at, piece in content.items():
                txn.put(at, piece)
        with env.begin(buffers=True) as txn:
            cursor = txn.cursor()
            assert cursor.first()
            yield cursor


def read(folder: Path, content: Mapping[bytes, bytes]) -> tuple[Record, bool]:
    with cursor_over(folder, content) as cursor:
        return read_record(cursor, "spans", 0)


@pytest.mark.parametrize("size", [0, 100, 9000])
def test_a_changed_byte_anywhere_is_seen(tmp_path: Path, size: int) -> None:
    content = stored(7, random.Random(1).randbytes(size), headers=HEADERS, count=9)
    chance = random.Random(size)
    for at, piece in content.items():
        places = {*range(min(len(piece), 70)), *(chance.randrange(len(piece)) for _ in range(60))}
        for place in places:
            changed = bytearray(piece)
            changed[place] ^= 1 << chance.randrange(8)
            with pytest.raises(Undecodable, match="damaged"):
                read(tmp_path, content | {at: bytes(changed)})


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_piece_is_seen_and_the_next_record_is_not_read_into_it(
    tmp_path: Path, lost: int
) -> None:
    content = stored(7, bytes(9000))
    del content[piece_key(7, lost)]

    with pytest.raises(Undecodable, match="damaged"):
        read(tmp_path, content | stored(8, bytes(9000)))


def test_a_record_at_another_offset_is_seen(tmp_path: Path) -> None:
    (piece,) = stored(7, b"value").values()

    with pytest.raises(Undecodable, match="CRC"):
        read(tmp_path, {piece_key(8): piece})


def test_a_head_that_says_gigabytes_reads_none(tmp_path: Path) -> None:
    head = struct.pack("<dIIII", TIME, 0xFFFFFFFF, 0, 3 << 30, 0)

    with pytest.raises(Undecodable, match="its head says"):
        read(tmp_path, {piece_key(7): head} | {piece_key(7, n): bytes(4080) for n in range(1, 9)})


def test_a_head_of_another_form_is_damage(tmp_path: Path) -> None:
    head = struct.pack("<dIIII", TIME, 5, 0, 1 << 31, 0)

    with pytest.raises(Undecodable, match="form"):
        read(tmp_path, {piece_key(7): head + b"value"})
    with cursor_over(tmp_path, {piece_key(8): head}) as cursor, pytest.raises(Undecodable):
        read_range(cursor, 8, 0, 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("headers", [(), HEADERS, (("large", b"y" * 9000),)])
def test_any_range_of_a_value_is_read(tmp_path: Path, size: int, headers: Headers) -> None:
    chance = random.Random(size)
    value = chance.randbytes(size)
    edges = {0, size, *(e for e in (1, 4040, 4059, 4060, 4061, 8136, 8137) if e <= size)}
    edges |= {chance.randrange(size + 1) for _ in range(20)}
    ranges = [(start, end) for start in edges for end in edges if start <= end]

    with cursor_over(tmp_path, stored(7, value, headers=headers) | stored(8, b"next")) as cursor:
        for start, end in ranges:
            assert read_range(cursor, 7, start, end) == value[start:end]
        assert read_range(cursor, 6, 0, 0) is None
        with pytest.raises(Undecodable, match="holds"):
            read_range(cursor, 7, 0, size + 1)


def test_a_piece_of_another_record_is_no_part_of_a_range(tmp_path: Path) -> None:
    content, other = stored(7, bytes(9000)), stored(9, bytes(9000))
    content[piece_key(7, 1)] = other[piece_key(9, 1)]

    with (
        cursor_over(tmp_path, content) as cursor,
        pytest.raises(Undecodable, match="CRC"),
    ):
        read_range(cursor, 7, 5000, 5010)
