"""What topic `windows` holds of the comparisons with the past (`evaluators/formulas/own_past.py`), by label set.

The state of a label set is one record, and all that must agree stands in it. Its larger parts, the strata and the
subjects that have entered, are records of their own, which are written after the state and may be older than it: the
state says what they lack.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from collector.records.codec import decode
from evaluators.formulas.own_past import PastState

DROPS = b"\0drops\0"
"""Prefix of the keys."""


class SettlingScore(msgspec.Struct, frozen=True, array_like=True):
    """The latest score of a subject (session or trace) that has not settled. Stored by order: append only."""

    subject: str
    due: float
    """Log time at which it has settled, unless a later score comes before."""
    revision: int
    final: bool
    score: float
    version: str
    """Of the agent."""
    seen: float = 0.0
    """Log time at which the subject's newest span was first seen: a change begins then, not when its sessions settled
    minutes later. 0 where an older version stored it."""

    @property
    def rank(self) -> tuple[int, bool]:
        """Total order of a subject's scores: the highest is the latest, in whatever order they arrive."""
        return (self.revision, self.final)


class DropState(msgspec.Struct, frozen=True, kw_only=True, tag="drop_state", omit_defaults=True):
    """The state of one label set."""

    labels: tuple[str, str, str, str]
    past: PastState
    settling: tuple[SettlingScore, ...] = ()
    next_offsets: dict[int, int] = {}
    """By partition of `signals`, the offset below which every signal is taken in."""
    entered: int = 0
    """How many subjects have entered."""
    newest: bytes = b""
    """Digests of the newest of them, 64 bits each: those that their part may lack."""
    trail: tuple[tuple[int, int], ...] = ()
    """How near an alarm it was, when: (log time in seconds, thousandths)."""


class DropPart(msgspec.Struct, frozen=True, kw_only=True, tag="drop_part"):
    """A stratum, or the subjects that have entered (name `own_history.OTHER`)."""

    labels: tuple[str, str, str, str]
    name: int
    packed: bytes


DropRecord: TypeAlias = DropState | DropPart
_record = msgspec.msgpack.Decoder(DropRecord)


def drop_key(labels: tuple[str, ...], name: int | None = None) -> bytes:
    return DROPS + f"{'' if name is None else name}\0".encode() + "\0".join(labels).encode()


def decode_drop(value: bytes) -> DropRecord:
    """A record with a key of `DROPS`.

    Raises:
        UnknownKind: a newer version wrote it.
        Undecodable: it is not one.
    """
    return decode(_record, value)
