"""Topic `windows`: the state of what one process publishes about agents and tasks. Compacted."""

from typing import TypeAlias

import msgspec

from collector.base.slots import NameVolume
from collector.records.traces import WorkRecord
from evaluators.formulas.objective_missed import Detector

Rank: TypeAlias = tuple[int, str, float, int, bool, str]
"""Of a score among those of its session: (start, trace id, log time, revision, final, signal id)."""


class WindowEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One session's latest score. Its place in the order of fields is what is stored: append only."""

    session: str
    time: float  # log time at which its newest span arrived
    revision: int
    final: bool
    id: str
    score: float
    covered: bool = True
    start: int = 0  # of the trace that was scored, unix nanoseconds; 0 for the score of a session
    trace_id: str = ""  # of the trace that was scored
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

    sessions: int  # of the version, at the look
    rank: float
    lower: float
    upper: float


class VersionLooksRecord(msgspec.Struct, frozen=True, array_like=True):
    """The looks at a version. Stored by order: append only."""

    baseline: str | None  # the version before it; None: it was the first
    looks: tuple[ReleaseLook, ...] = ()


class WindowRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The windows of one label set, and its detector beside the objective."""

    entries: tuple[WindowEntry, ...]
    versions: dict[str, tuple[WindowEntry, ...]] = {}
    looks: dict[str, VersionLooksRecord] = {}  # by version
    detector: Detector
    last_score: float = 0.0
    next_offsets: dict[int, int] = msgspec.field(default_factory=dict[int, int], name="reach")
    """By partition of `signals`, the offset below which every signal is taken in."""
    fed: tuple[str, ...] = ()  # ids of the newest signals that the detector has taken in


class TaskRun(msgspec.Struct, frozen=True, array_like=True):
    """One run of a task. New fields are at the end."""

    session: str  # a digest of the session's id
    ended: float  # log time of its end
    success: bool | None  # None: nothing decides it yet
    stated: bool = False  # see `RunRecord.stated`


class SlotsRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which agents and evaluators have label values of their own, and the volume of each and of those that wait."""

    agents: tuple[tuple[tuple[str, str], NameVolume], ...] = ()
    agents_waiting: tuple[tuple[tuple[str, str], NameVolume], ...] = ()
    evaluators: tuple[tuple[str, NameVolume], ...] = ()
    evaluators_waiting: tuple[tuple[str, NameVolume], ...] = ()


class RankedSignal(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A record of `signals` as it was decided."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class RankedBatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided last, written before all else of it.

    A process that ends in the middle of the write leaves it to the next one, which writes the same again.
    """

    next_offsets: dict[int, int]
    """By partition of `traces`, the offset below which everything is decided."""
    partitions: tuple[int, ...] = ()  # whose offsets are committed at the end of the write
    signals: tuple[RankedSignal, ...] = ()
    closed: tuple[WorkRecord, ...] = ()  # sessions that were put into histories, in order
    calls: tuple[tuple[str, str, int, int], ...] = ()
    """(service, name of the history, number of the trace, model calls) of traces that were put into histories."""
    recent: tuple[str, ...] = ()
    """Digests of the newest closed sessions with their revisions: another record of one of them is a repeat."""
