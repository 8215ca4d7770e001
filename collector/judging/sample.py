"""Which sessions are judged: a hash of the session key, so that every process and every replay agrees."""

from __future__ import annotations

import hashlib

_RANGE = 1 << 64


def is_sampled(key: bytes, share: float) -> bool:
    """Whether the session of this key is in the sample; all are at 1, none at 0."""
    drawn = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) / _RANGE
    return drawn < share
