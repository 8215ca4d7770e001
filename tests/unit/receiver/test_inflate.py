"""Decompression with a bound."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from collector.base.errors import TooLarge, Undecodable
from collector.receiver.inflate import BY_NAME, sniff

COMPRESS = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
MIB = 1 << 20


@pytest.mark.parametrize("name", COMPRESS)
def test_exactly_the_limit_is_allowed_and_one_more_is_not(name: str) -> None:
    packed = COMPRESS[name](bytes(1000))

    assert BY_NAME[name](packed, 1000) == bytes(1000)
    with pytest.raises(TooLarge):
        BY_NAME[name](packed, 999)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_bomb_costs_no_more_than_the_limit(name: str) -> None:
    bomb = COMPRESS[name](bytes(300 * MIB))
    tracemalloc.start()

    with pytest.raises(TooLarge):
        BY_NAME[name](bomb, MIB)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * MIB


def test_a_bomb_of_many_gzip_members_is_refused() -> None:
    with pytest.raises(Undecodable, match="more than 64 gzip members"):
        BY_NAME["gzip"](gzip.compress(b"") * 65, MIB)


def test_grpc_messages_are_distinguished_by_their_first_bytes() -> None:
    plain = b"\x0a\x00"

    assert sniff(gzip.compress(plain), MIB) == plain
    assert sniff(zlib.compress(plain), MIB) == plain
    assert sniff(plain, MIB) == plain
    looks_like_zlib = b"\x78\x9c\x01"  # and is an unknown field
    assert sniff(looks_like_zlib, MIB) == looks_like_zlib
    assert sniff(b"", MIB) == b""
