"""Which partition a key belongs to: murmur2, as Kafka's default partitioner has it, so that every log agrees.

Source: org.apache.kafka.clients.producer (Java): `(murmur2(key) & 0x7fffffff) % partitions`, seed 0x9747b28c.
"""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_WORD = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition, 0 to `partitions` - 1, of a record with this key."""
    if partitions == 1:
        return 0
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(key: bytes) -> int:
    """The 32-bit MurmurHash2 of `key`, unsigned."""
    whole = len(key) & ~3
    digest = _SEED ^ len(key)
    for (word,) in struct.iter_unpack("<I", key[:whole]):
        word = word * _MIX & _WORD  # noqa: PLW2901 - the word is mixed in place, as the paper has it
        word = (word ^ word >> 24) * _MIX & _WORD  # noqa: PLW2901
        digest = digest * _MIX & _WORD ^ word
    if whole != len(key):
        digest = (digest ^ int.from_bytes(key[whole:], "little")) * _MIX & _WORD
    digest = (digest ^ digest >> 13) * _MIX & _WORD
    return digest ^ digest >> 15
