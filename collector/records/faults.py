"""What topic `windows` holds of fault watches (`evaluators/formulas/fault_watch.py`), by agent.

Its one part are the sessions that have entered.
"""

import msgspec

from collector.base.slots import NameVolume
from evaluators.formulas.fault_watch import FaultKind, FaultState
from evaluators.uses import SessionUses


class SettlingUses(msgspec.Struct, frozen=True, array_like=True):
    """A turn whose uses have not entered. Stored by order: append only."""

    subject: str
    due: float  # log time at which they enter
    revision: int
    closed: bool
    seen: float  # log time at which its newest span was first seen
    uses: SessionUses
    is_named: bool = True  # whether `session` is its id; False: a digest, as the id is long
    session: str = ""
    is_revised: bool = False  # whether an earlier revision of the turn has closed

    @property
    def rank(self) -> tuple[int, bool]:
        """Total order of what is said of the subject, in whatever order it arrives."""
        return (self.revision, self.closed)

    @property
    def size(self) -> int:
        """What it counts towards the most that may settle at the same time: at most 150 bytes each."""
        return 2 + len(self.uses.tools)


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


class AgentFaultsState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    watches: tuple[WatchState, ...] = ()
    durations: dict[str, tuple[dict[int, int], tuple[float, ...]]] = {}
    """By tool: `Durations.counts` and `.waiting`."""
    tools: tuple[tuple[str, NameVolume], ...] = ()
    """Tools with watches of their own, and how much each is used lately."""
    tools_waiting: tuple[tuple[str, NameVolume], ...] = ()
    settling: tuple[SettlingUses, ...] = ()
    next_offsets: dict[int, int] = {}
    """By partition of `traces`, the offset below which every record is taken in."""
    entered: int = 0  # how many turns have entered
    newest: bytes = b""  # digests of the newest of them, 64 bits each: those that the part may lack
    lately: dict[int, int] = {}  # what the newest sessions used: `LatelyUsed`
