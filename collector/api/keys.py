"""How the index orders and finds its entries: fixed-width keys, so that a prefix is a subject."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from functools import lru_cache

WIDTH = 16
_MAX = (1 << 64) - 1


@lru_cache(maxsize=4096)
def of(*parts: str) -> bytes:
    """16 bytes that stand for these names."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=WIDTH).digest()


def number(value: float) -> bytes:
    """8 bytes in the order of the number; below 0 counts as 0."""
    return struct.pack(">Q", min(_MAX, max(0, int(value))))


def read_number(key: bytes) -> int:
    """The number that `number` wrote."""
    return struct.unpack(">Q", key[:8])[0]


def micros(seconds: float) -> int:
    """Log times are kept in whole microseconds, so that sums and orders are exact."""
    return round(seconds * 1e6)


def cursor(key: bytes) -> str:
    """A key as clients carry it."""
    return base64.urlsafe_b64encode(key).rstrip(b"=").decode()


def read_cursor(text: str) -> bytes:
    """The key behind a cursor.

    Raises:
        ValueError: It is none of ours.
    """
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("not a cursor") from error
