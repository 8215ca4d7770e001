"""Which traces are forwarded: decisions, and what they follow from, in the record that their owner adds to `traces`."""

import hashlib
from math import inf
from typing import Literal, get_args

import msgspec

KeptReason = Literal[
    "failed", "slow", "alarm", "new_version", "feedback", "share", "other", "failed_late"
]
KEPT_REASONS: tuple[KeptReason, ...] = get_args(KeptReason)


class ClosedTrace(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """What decides of a trace that has closed, as its newest record says it. Ids are bytes."""

    trace_id: bytes
    offset: int
    """Of its newest record in this partition of `traces`."""
    service: str
    agent: str
    version: str | None
    session: bytes
    """16 bytes that stand for service and session (`session_of`)."""
    duration: float
    randomness: int
    """56 bits."""
    failed: bool
    """A final score did not pass, it ended in an error, or it may run away."""
    is_other: bool
    """No agent, model or tool is seen in it."""

    @property
    def agent_key(self) -> str:
        return agent_key(self.service, self.agent)


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of one trace, with what the decisions after it need of it."""

    trace: ClosedTrace
    decided: float
    """Log time."""
    reason: str
    """Why it was kept; of one that was not, what would have kept it: `share`, `other` or `per_minute`."""
    is_kept: bool
    threshold: int = 0
    """The rejection threshold of its sampling, of 2**56; 0: kept for a reason."""


class AgentPast(msgspec.Struct, array_like=True):
    """What is known of an agent."""

    durations: list[float] = []
    """Of its newest traces, in seconds."""
    versions: dict[str, list[bytes]] = {}
    """By version, its first sessions."""


class KeepingState(msgspec.Struct, kw_only=True):
    """Everything that decisions follow from."""

    agents: dict[str, AgentPast] = {}
    failing: dict[bytes, float] = {}
    """Sessions whose newest scores did not pass, with the log time of that."""
    said: dict[bytes, float] = {}
    """Traces and sessions that somebody said something of, with the log time of that."""
    alarms: list[str] = []
    """Agents that have a fault or a drop now."""
    decisions: dict[bytes, Decision] = {}
    minute: int = 0
    """Of `counts`, in log time."""
    counts: dict[str, int] = {}
    """How many traces of each agent were kept in that minute."""
    reasons: list[str] = []
    """Agents and reasons of which one was kept in that minute."""
    wanted: dict[str, int] = {}
    """How many of each agent were kept in that minute, or would have been without a limit."""
    wanted_before: dict[str, int] = {}
    """Likewise in the minute before."""
    part: float = inf
    """What an agent may use of the limit in that minute: those that want less leave it to the others."""


class KeepingRecord(msgspec.Struct, kw_only=True, tag="keeping", omit_defaults=True):
    """What was decided since the record before."""

    state: KeepingState | None = None
    """Everything, with what this record says; None: what `since` says, then this record."""
    since: list[int] = []
    """Offsets, in this partition, of the newest record with a state and of those behind it."""
    decisions: list[Decision] = []
    failing: dict[bytes, float | None] = {}
    """Sessions that changed; None: they pass again."""
    said: dict[bytes, float] = {}
    alarms: list[str] | None = None
    """All of them; None: as before."""


class BroadcastRecord(
    msgspec.Struct, frozen=True, kw_only=True, tag="broadcast", omit_defaults=True
):
    """What the owners of traces need of others: it is written into every partition that it may be about."""

    said: bytes | None = None
    """The trace, or the session (`session_of`), that somebody said something of."""
    alarms: tuple[str, ...] | None = None
    """Every agent, as `agent_key`, that has a fault or a drop now; None: this is about something else."""


def agent_key(service: str, agent: str) -> str:
    return f"{service}\0{agent}"


def session_of(key: bytes) -> bytes:
    """A short key for a session whose own key is of any length."""
    return hashlib.sha256(key).digest()[:16]
