"""Records as pieces in LMDB: whatever is damaged in one is seen, and raises one declared error."""

from __future__ import annotations

import random
import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest

from collector.errors import Undecodable
from collector.log.disk.frames import footprint, piece_key, pieces, read_record
from collector.log.port import Headers, Record

PAGE = 4096
TIME = 1_790_000_000.25
HEADERS: Headers = (("content-type", b"x" * 20), ("h", b""))
SIZES = [0, 1, 2000, 4055, 4080, 4081, 9000, 50_000]


def stored(
    offset: int, value: bytes, *, key: bytes = b"key", headers: Headers = ()
) -> dict[bytes, bytes]:
    made = pieces(offset, time=TIME, key=key, value=value, headers=headers, page=PAGE)
    return {at: bytes(piece) for at, piece in made}


def of_version_1(offset: int, value: bytes, key: bytes = b"key") -> dict[bytes, bytes]:
    """As versions without a CRC wrote it; of one piece."""
    head = struct.pack("<dIII", TIME, len(value), len(key), 0)
    return {piece_key(offset): head + key + value}


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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("headers", [(), HEADERS, (("large", b"y" * 9000),)])
def test_a_record_is_read_as_it_was_written(tmp_path: Path, size: int, headers: Headers) -> None:
    value = random.Random(size).randbytes(size)
    content = stored(7, value, headers=headers) | stored(8, b"next")

    record, follows = read(tmp_path, content)

    assert (record.position.offset, record.key, record.value) == (7, b"key", value)
    assert (record.time, record.headers, follows) == (TIME, headers, True)
    assert sum(map(len, stored(7, value).values())) <= footprint(size + 3, page=PAGE)


def test_a_record_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    record, follows = read(tmp_path, of_version_1(7, b"value"))

    assert (record.key, record.value, record.time, follows) == (b"key", b"value", TIME, False)


@pytest.mark.parametrize("size", [0, 100, 9000])
def test_a_changed_byte_anywhere_is_seen(tmp_path: Path, size: int) -> None:
    content = stored(7, random.Random(1).randbytes(size), headers=HEADERS)
    chance = random.Random(size)
    for at, piece in content.items():
        places = {*range(min(len(piece), 70)), *(chance.randrange(len(piece)) for _ in range(60))}
        for place in places:
            changed = bytearray(piece)
            changed[place] ^= 1 << chance.randrange(8)
            with pytest.raises(Undecodable, match="damaged"):
                read(tmp_path, content | {at: bytes(changed)})


@pytest.mark.parametrize("seed", range(40))
def test_overwritten_pieces_raise_one_declared_error(tmp_path: Path, seed: int) -> None:
    """Also of the version without a CRC, where only the lengths can tell: never another error."""
    chance = random.Random(seed)
    old = of_version_1(7, chance.randbytes(1500))
    for content in (stored(7, chance.randbytes(9000), headers=HEADERS), old):
        at = chance.choice(list(content))
        damaged = content | {at: chance.randbytes(chance.choice([1, 19, len(content[at])]))}
        try:
            read(tmp_path, damaged)
        except Undecodable:
            continue
        assert content is old


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
    head = struct.pack("<dIII", TIME, 0xFFFFFFFF, 0, 0)

    with pytest.raises(Undecodable, match="its head says"):
        read(tmp_path, {piece_key(7): head} | {piece_key(7, n): bytes(4080) for n in range(1, 9)})
