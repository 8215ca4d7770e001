"""Topic `windows`: the state of what one process publishes about agents and tasks. Compacted."""

import msgspec

from collector.base.slots import SlotsState
from collector.records.traces import WorkRecord
from evaluators.formulas.fault_watch import Counts, EarlierUse, FaultKind, FaultState
from evaluators.formulas.objective_missed import Detector
from evaluators.formulas.own_past import PastState
from evaluators.formulas.release_verdict import Look
from evaluators.uses import SessionUses

Rank = tuple[int, str, float, int, bool, str]
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
    weight: float = 1.0
    """As how many sessions it counts in a mean: 1 / the probability with which it was judged."""

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


class VersionLooksRecord(msgspec.Struct, frozen=True, array_like=True):
    """The looks at a version. Stored by order: append only."""

    baseline: str | None  # the version before it; None: it was the first
    looks: tuple[Look, ...] = ()


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


class SlotsRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which agents and evaluators have label values of their own, and the volume of each and of those that wait."""

    agents: SlotsState[tuple[str, str]] = ((), ())
    evaluators: SlotsState[str] = ((), ())
    externals: SlotsState[str] = ((), ())


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


class SettlingSubject(msgspec.Struct, frozen=True, array_like=True):
    """The latest of what is said of a subject that has not settled. Stored by order: append only."""

    subject: str
    due: float  # log time at which it has settled, unless something later comes before
    revision: int
    final: bool

    @property
    def rank(self) -> tuple[int, bool]:
        """Total order of what is said of a subject: the highest is the latest, in whatever order it arrives."""
        return (self.revision, self.final)

    @property
    def size(self) -> int:
        """What it counts towards the most that may settle at the same time."""
        return 1


class SettlingScore(SettlingSubject, frozen=True, array_like=True):
    """The score of a session or trace."""

    score: float
    version: str  # of the agent
    seen: float
    """Log time at which the subject's newest span was first seen: a change begins then, not when its sessions settled
    minutes later."""


class DriftState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    past: PastState
    settling: tuple[SettlingScore, ...] = ()
    next_offsets: dict[int, int] = {}
    """By partition of `signals`, the offset below which every signal is taken in."""
    entered: int = 0  # how many subjects have entered
    newest: bytes = b""
    """Digests of the newest of them, 64 bits each: those that their part may lack."""
    trail: tuple[tuple[int, int], ...] = ()
    """How near an alarm it was, when: (log time in seconds, thousandths)."""


class SettlingUses(SettlingSubject, frozen=True, array_like=True):
    """A turn whose uses have not entered."""

    seen: float  # log time at which its newest span was first seen
    uses: SessionUses
    is_named: bool = True  # whether `session` is its id; False: a digest, as the id is long
    session: str = ""
    is_revised: bool = False  # whether an earlier revision of the turn has closed
    version: str = ""  # of the agent; empty: it names none

    @property
    def size(self) -> int:
        """At most 150 bytes each."""
        return 2 + len(self.uses.tools)


NEWEST = 200  # sessions of a version that count
_ALL = (1 << NEWEST) - 1


class VersionUses(msgspec.Struct, array_like=True):
    """The newest sessions of one version, each once. Stored by order: append only."""

    uses: int = 0
    failed: bytes = b""
    """As a big-endian number: its lowest bit says whether the newest of them failed."""

    @property
    def counted(self) -> Counts:
        bits = int.from_bytes(self.failed)
        again = (bits & bits >> 1).bit_count()
        return Counts(self.uses, bits.bit_count(), (bits >> 1).bit_count(), again)

    def count(self, failed: bool, earlier: EarlierUse | None) -> None:
        """A use; `earlier`: the use before of the same session, which is counted once."""
        bits = int.from_bytes(self.failed)
        if earlier is None:
            bits = ((bits << 1) | failed) & _ALL
            self.uses = min(self.uses + 1, NEWEST)
        elif failed and not earlier.failed:
            bits |= ~bits & (bits + 1) & ((1 << self.uses) - 1)  # one of them failed after all
        self.failed = bits.to_bytes((bits.bit_length() + 7) // 8)


class WatchState(msgspec.Struct, array_like=True):
    """One watch. Stored by order: append only."""

    fault: FaultKind
    tool: str  # empty: of the agent
    state: FaultState
    errors: list[str] = []  # classes of the newest failures' errors
    sessions: list[str] = []  # the newest sessions that failed since the sums were 0
    ended: float = 0.0
    """Log time at which a fault that was shown was over; 0: there was none lately."""
    ended_since: float = 0.0  # when that one had begun
    versions: dict[str, VersionUses] = {}  # the one that was used last is at the end


class AgentFaultsState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    watches: tuple[WatchState, ...] = ()
    durations: dict[str, tuple[dict[int, int], tuple[float, ...]]] = {}
    """By tool: `Durations.counts` and `.waiting`."""
    tools: SlotsState[str] = ((), ())
    """Tools with watches of their own, those that wait, and how much each is used lately."""
    settling: tuple[SettlingUses, ...] = ()
    next_offsets: dict[int, int] = {}
    """By partition of `traces`, the offset below which every record is taken in."""
    entered: int = 0  # how many turns have entered
    newest: bytes = b""  # digests of the newest of them, 64 bits each: those that the part may lack
    servers: dict[str, str] = {}  # by tool, the MCP server that its spans name
    told_as: dict[str, str] = {}
    """By server whose tools fail together, the tool whose alert goes on for it; empty: it has an alert of its own."""
    lately: dict[int, int] = {}  # what the newest sessions used: `LatelyUsed`
