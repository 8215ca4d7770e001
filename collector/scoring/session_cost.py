"""What an open session takes in memory: at rest, packed, which it is charged; and awake, of which few may be.

Functions of what the log holds of it alone, so that a restart charges the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from collector.records.sessions import SessionHead, TaskClaims
from collector.scoring.sliding_window import SlidingWindow, text_size

LONGEST = 64
"""Traces of a session that is packed at most: a longer one would take too long to wake for each of its traces."""
SESSION_COST = 3_500
"""Bytes that an awake session takes besides its traces, its key and its names, from what tracemalloc says."""
OUTCOME_COST = 220
"""Bytes of one evaluator's outcome of a trace: its score, its signal's id, the verdict that is due."""
RESTING_SESSION = 600
"""The same of a session at rest."""
RESTING_OUTCOME = 25
"""The same of one outcome of a trace at rest."""
RESTING_SKETCHES = 1_800
"""The same of the sketches of a turn at rest: a vector of 256 numbers, and an answer of some hundred words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCosts:
    """Makes the figures."""

    outcomes: int
    """Of one trace, by how many evaluators it is scored."""
    sketches: int = 0
    """Of how many turns a session at rest keeps them."""

    def charged(
        self, key: bytes, head: SessionHead, claims: TaskClaims | None, window: SlidingWindow
    ) -> int:
        """Bytes that the session is charged: at rest, or awake where it is too long to be packed."""
        if len(window) > LONGEST:
            return self.awake(key, head, claims, window)
        traces = window.resting + RESTING_OUTCOME * self.outcomes * len(window)
        sketches = RESTING_SKETCHES * min(self.sketches, len(window))
        return RESTING_SESSION + _names(key, head, claims) + traces + sketches

    def awake(
        self, key: bytes, head: SessionHead, claims: TaskClaims | None, window: SlidingWindow
    ) -> int:
        traces = window.cost + OUTCOME_COST * self.outcomes * len(window)
        return SESSION_COST + _names(key, head, claims) + traces


def _names(key: bytes, head: SessionHead, claims: TaskClaims | None) -> int:
    task = 0 if claims is None else text_size(claims.task_id)
    return len(key) + text_size(head.session_id) + text_size(head.service) + task
