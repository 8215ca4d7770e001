"""Which traces are forwarded: decisions, and what they follow from, in the record that their owner adds to `traces`."""

from __future__ import annotations

from math import inf
from typing import Literal, TypeAlias, get_args

import msgspec

KeptReason: TypeAlias = Literal[
    "failed", "slow", "alarm", "new_version", "feedback", "share", "other", "failed_late"
]
KEPT_REASONS: tuple[KeptReason, ...] = get_args(KeptReason)


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of one trace, with what the decisions after it need of it. Ids are bytes."""

    trace_id: bytes
    offset: int
    """Of its newest record in this partition of `traces`."""
    decided: float
    """Log time."""
    reason: str
    """Why it was kept; of one that was not, what would have kept it: `share`, `other` or `per_minute`."""
    is_kept: bool
    threshold: int = 0
    """The rejection threshold of its sampling, of 2**56; 0: kept for a reason."""
    service: str = ""
    agent: str = ""
    version: str | None = None
    session: bytes = b""
    duration: float = 0.0
    randomness: int = 0


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
    """Agents for which a fault or a drop stands."""
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


class KeepingRecord(msgspec.Struct, frozen=True, kw_only=True, tag="keeping", omit_defaults=True):
    """What was decided since the record before, or everything."""

    state: KeepingState | None = None
    """None: it is that of `since`, then of each record of `since` in order, then of this one."""
    since: tuple[int, ...] = ()
    """Offsets, in this partition, of the newest record with a state and of those behind it."""
    decisions: tuple[Decision, ...] = ()
    failing: dict[bytes, float | None] = {}
    """Sessions that changed; None: they pass again."""
    said: dict[bytes, float] = {}
    alarms: tuple[str, ...] = ()
    """All of them."""


class BroadcastRecord(
    msgspec.Struct, frozen=True, kw_only=True, tag="broadcast", omit_defaults=True
):
    """What the owners of traces need of others: it is written into every partition that it may be about."""

    trace_id: str | None = None  # somebody said something of it
    session_key: bytes | None = None  # likewise
    alarms: tuple[str, ...] | None = None
    """Every agent, as `agent_key`, for which a fault or a drop stands now; None: this is about something else."""


def agent_key(service: str, agent: str) -> str:
    return f"{service}\0{agent}"
