"""Topic `windows`: the state of what one process publishes about agents and tasks. Compacted."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from collector.base.slots import NameVolume
from collector.records.codec import decode
from collector.records.standing import OpenRunaway
from collector.records.traces import WorkRecord
from evaluators.formulas.objective_missed import Detector

TASK = b"\0task\0"
"""Prefix of the keys of tasks; the keys of label sets begin with a service."""
SLOTS = b"\0slots"
"""Key of the one record that says which names have label values."""

VERSIONS = b"\0versions\0"
"""Prefix of the keys of agents' versions: service and agent follow."""

RANKED = b"\0ranked\0"
"""Prefix of the keys of what sessions are ranked among; the exporter passes over them."""
LAST_RANKED = RANKED + b"last"

RUNAWAYS = b"\0runaways"
"""Key of the one record that says which open traces run away."""

Rank: TypeAlias = tuple[int, str, float, int, bool, str]
"""Of a score among those of its session: (start, trace id, log time, revision, final, signal id)."""


class WindowEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One session's latest score. Its place in the order of fields is what is stored: append only."""

    session: str
    time: float
    """Log time at which its newest span arrived."""
    revision: int
    final: bool
    id: str
    score: float
    covered: bool = True
    start: int = 0
    """Of the trace that was scored, unix nanoseconds; 0 for the score of a session."""
    trace_id: str = ""
    """Of the trace that was scored."""
    gone: bool = False
    """The session's latest score names another agent or version: it keeps its place and counts for nothing here."""
    version: str | None = None
    """Of the agent, empty when it names none; None: written before versions were kept, so that it cannot end."""

    @property
    def rank(self) -> Rank:
        """Total order of a session's scores: the highest is the latest, in whatever order they arrive.

        The score of the newest turn by (start, trace id) is the latest; of a session's own scores, the newest.
        """
        started = self.start or int(self.time * 1e9)
        return (started, self.trace_id, self.time, self.revision, self.final, self.id)

    @property
    def age(self) -> tuple[int, str]:
        """Total order of sessions, oldest first. It never falls while `rank` rises, so that order does not matter."""
        return (self.start or int(self.time * 1e9), self.session)


class ReleaseLook(msgspec.Struct, frozen=True, array_like=True):
    """A look at a version beside the one before it. Stored by order: append only."""

    sessions: int
    """Of the version, at the look."""
    rank: float
    lower: float
    upper: float


class VersionLooksRecord(msgspec.Struct, frozen=True, array_like=True):
    """The looks at a version. Stored by order: append only."""

    baseline: str | None
    """The version before it; None: it was the first."""
    looks: tuple[ReleaseLook, ...] = ()


class WindowRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The windows and the drift detector of one label set (service, agent, evaluator, scope)."""

    labels: tuple[str, str, str, str]
    entries: tuple[WindowEntry, ...]
    versions: dict[str, tuple[WindowEntry, ...]] = {}
    looks: dict[str, VersionLooksRecord] = {}
    """By version."""
    detector: Detector
    last_score: float = 0.0
    next_offsets: dict[int, int] = msgspec.field(default_factory=dict[int, int], name="reach")
    """By partition of `signals`, the offset below which every signal is taken in."""
    fed: tuple[str, ...] = ()
    """Ids of the newest signals that the detector has taken in."""


class VersionsRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When the versions of one agent had sessions. Key: `VERSIONS` and the agent's labels."""

    service: str
    agent: str
    seen: dict[str, tuple[float, ...]] = {}
    """By version, log times: the newest one, and those that decide which other versions have ended."""


class TaskRun(msgspec.Struct, frozen=True, array_like=True):
    """One run of a task. New fields stand at the end."""

    session: str
    """A digest of the session's id."""
    ended: float
    """Log time of its end."""
    success: bool | None
    """None: nothing decides it yet."""
    stated: bool = False
    """See `RunRecord.stated`."""


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """The newest runs of one task. Key: `TASK` and the digest of the task."""

    service: str
    agent: str
    task: str
    """A digest of service, agent and task id, as they were before any label was folded."""
    runs: tuple[TaskRun, ...]
    """Oldest first."""


class SlotsRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which agents and evaluators have label values of their own, and the volume of each and of those that wait."""

    agents: tuple[tuple[tuple[str, str], NameVolume], ...] = ()
    agents_waiting: tuple[tuple[tuple[str, str], NameVolume], ...] = ()
    evaluators: tuple[tuple[str, NameVolume], ...] = ()
    evaluators_waiting: tuple[tuple[str, NameVolume], ...] = ()


class RunawaysRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The open traces that run away, the one that was found longest ago first."""

    traces: tuple[OpenRunaway, ...] = ()


class AgentWork(msgspec.Struct, frozen=True, kw_only=True, tag="agent_work", omit_defaults=True):
    """The work of an agent's newest closed sessions. Key: `RANKED` and the name."""

    service: str
    name: str
    """A digest of service, agent and first model."""
    sessions: bytes
    """As `WorkHistory.pack` gives them."""


class TaskWrites(msgspec.Struct, frozen=True, kw_only=True, tag="task_writes", omit_defaults=True):
    """The writes of a task's newest runs. Key: `RANKED` and the name."""

    service: str
    name: str
    """A digest of service and task id."""
    runs: tuple[tuple[int, bytes], ...]
    """As `TaskRunsHistory.packed` gives them."""


class AgentCalls(msgspec.Struct, frozen=True, kw_only=True, tag="agent_calls", omit_defaults=True):
    """The model calls of an agent's newest closed traces. Key: `RANKED` and the name."""

    service: str
    name: str
    """A digest of service, agent and first model."""
    traces: bytes
    """As `TraceCallsHistory.pack` gives them."""


class RankedSignal(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A record of `signals` as it was decided."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class RankedBatch(msgspec.Struct, frozen=True, kw_only=True, tag="batch", omit_defaults=True):
    """What was decided last, written before all else of it. Key: `LAST_RANKED`.

    A process that ends in the middle of the write leaves it to the next one, which writes the same again.
    """

    next_offsets: dict[int, int]
    """By partition of `traces`, the offset below which everything is decided."""
    partitions: tuple[int, ...] = ()
    """Whose offsets are committed at the end of the write."""
    signals: tuple[RankedSignal, ...] = ()
    closed: tuple[WorkRecord, ...] = ()
    """Sessions that were put into histories, in order."""
    calls: tuple[tuple[str, str, int, int], ...] = ()
    """(service, name of the history, number of the trace, model calls) of traces that were put into histories."""
    recent: tuple[str, ...] = ()
    """Digests of the newest closed sessions with their revisions: another record of one of them is a repeat."""


Ranked: TypeAlias = AgentWork | TaskWrites | AgentCalls | RankedBatch
_ranked = msgspec.msgpack.Decoder(Ranked)
_window = msgspec.msgpack.Decoder(WindowRecord)
_slots = msgspec.msgpack.Decoder(SlotsRecord)
_task = msgspec.msgpack.Decoder(TaskState)
_versions = msgspec.msgpack.Decoder(VersionsRecord)
_runaways = msgspec.msgpack.Decoder(RunawaysRecord)


def decode_window(value: bytes) -> WindowRecord:
    """The record of a label set.

    Raises:
        Undecodable: it is not one.
    """
    return decode(_window, value)


def decode_task(value: bytes) -> TaskState:
    """The record of a task.

    Raises:
        Undecodable: it is not one.
    """
    return decode(_task, value)


def decode_versions(value: bytes) -> VersionsRecord:
    """The record of an agent's versions.

    Raises:
        Undecodable: it is not one.
    """
    return decode(_versions, value)


def decode_slots(value: bytes) -> SlotsRecord:
    """The record of the slots.

    Raises:
        Undecodable: it is not one.
    """
    return decode(_slots, value)


def decode_runaways(value: bytes) -> RunawaysRecord:
    """The record of the open traces that run away.

    Raises:
        Undecodable: it is not one.
    """
    return decode(_runaways, value)


def decode_ranked(value: bytes) -> Ranked:
    """A record of what sessions are ranked among.

    Raises:
        UnknownKind: a newer version wrote it.
        Undecodable: it is not one.
    """
    return decode(_ranked, value)
