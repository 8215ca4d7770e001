"""What topic `windows` holds of fault watches (`evaluators/formulas/fault_watch.py`), by agent.

As for the comparisons of scores (`drift.py`), the state is one record, and the sessions that have entered are a part
of their own.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from collector.base.slots import NameVolume
from collector.records.codec import decode
from evaluators.formulas.fault_watch import FaultKind, FaultState
from evaluators.uses import SessionUses

FAULTS = b"\0faults\0"
"""Prefix of the keys."""


class SettlingUses(msgspec.Struct, frozen=True, array_like=True):
    """A session that has not settled, as it was seen last. Stored by order: append only."""

    subject: str
    due: float
    """Log time at which it has settled, unless a later record comes before."""
    revision: int
    closed: bool
    seen: float
    """Log time at which its newest span was first seen."""
    uses: SessionUses
    is_named: bool = True
    """Whether the subject is the session's id; False: a digest, as the id is long."""

    @property
    def rank(self) -> tuple[int, bool]:
        """Total order of a session's records, in whatever order they arrive."""
        return (self.revision, self.closed)

    @property
    def size(self) -> int:
        """What it counts towards the most that may settle at the same time: at most 150 bytes each."""
        return 2 + len(self.uses.tools)


class WatchState(msgspec.Struct, array_like=True):
    """One watch. Stored by order: append only."""

    fault: FaultKind
    tool: str
    """Empty: of the agent."""
    state: FaultState
    errors: list[str] = []
    """Classes of the newest failures' errors."""
    sessions: list[str] = []
    """The newest sessions that failed since the sums were 0."""
    ended: float = 0.0
    """Log time at which a fault that was shown was over; 0: there was none lately."""
    ended_since: float = 0.0
    """When that one had begun."""


class AgentFaultsState(
    msgspec.Struct, frozen=True, kw_only=True, tag="faults_state", omit_defaults=True
):
    """The watches of one agent."""

    labels: tuple[str, str]
    watches: tuple[WatchState, ...] = ()
    durations: dict[str, tuple[dict[int, int], tuple[float, ...]]] = {}
    """By tool: `Durations.counts` and `.waiting`."""
    tools: tuple[tuple[str, NameVolume], ...] = ()
    """Tools with watches of their own, and how much each is used lately."""
    tools_waiting: tuple[tuple[str, NameVolume], ...] = ()
    settling: tuple[SettlingUses, ...] = ()
    next_offsets: dict[int, int] = {}
    """By partition of `traces`, the offset below which every record is taken in."""
    entered: int = 0
    """How many sessions have entered."""
    newest: bytes = b""
    """Digests of the newest of them, 64 bits each: those that the part may lack."""


class AgentFaultsPart(msgspec.Struct, frozen=True, kw_only=True, tag="faults_part"):
    """The sessions that have entered."""

    labels: tuple[str, str]
    name: int
    packed: bytes


FaultsRecord: TypeAlias = AgentFaultsState | AgentFaultsPart
_record = msgspec.msgpack.Decoder(FaultsRecord)


def faults_key(agent: tuple[str, str], part: int | None = None) -> bytes:
    return FAULTS + f"{'' if part is None else part}\0".encode() + "\0".join(agent).encode()


def decode_faults(value: bytes) -> FaultsRecord:
    """A record with a key of `FAULTS`.

    Raises:
        UnknownKind: a newer version wrote it.
        Undecodable: it is not one.
    """
    return decode(_record, value)
