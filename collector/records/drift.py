"""What topic `windows` holds of the comparisons with the past (`evaluators/formulas/own_past.py`), by label set.

Its parts are the strata and, as `own_history.OTHER`, the subjects that have entered.
"""

import msgspec

from evaluators.formulas.own_past import PastState


class SettlingScore(msgspec.Struct, frozen=True, array_like=True):
    """The latest score of a subject (session or trace) that has not settled. Stored by order: append only."""

    subject: str
    due: float  # log time at which it has settled, unless a later score comes before
    revision: int
    final: bool
    score: float
    version: str  # of the agent
    seen: float = 0.0
    """Log time at which the subject's newest span was first seen: a change begins then, not when its sessions settled
    minutes later. 0 where an older version stored it."""

    @property
    def rank(self) -> tuple[int, bool]:
        """Total order of a subject's scores: the highest is the latest, in whatever order they arrive."""
        return (self.revision, self.final)


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
