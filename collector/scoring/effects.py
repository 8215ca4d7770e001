"""The values that the pure part of scoring returns: what to publish and to store, and what must be scored first."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from collector.records.sessions import SessionsTopic, SessionTurn
from collector.records.signal import Signal
from collector.records.traces import RunRecord, SessionRecord, VerdictRecord
from collector.scoring.sliding_window import Placement
from evaluators.model import Outcome, SessionClosed, Trace

Report: TypeAlias = SessionRecord | RunRecord | VerdictRecord
"""Records that scoring adds to topic `traces`, for the other rooms and for itself."""


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """A signal to publish."""

    signal: Signal
    is_first: bool
    """It is the first final outcome of its (subject, evaluator), which counters count."""


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """The tombstone of a session's state."""

    state: SessionsTopic


Change: TypeAlias = SessionsTopic | Report | Drop
"""A record is put in place of the earlier one of its key; a `Drop` removes it."""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a partition's sessions. All signals of a batch are written before all its changes (rule 4).

    Puts and drops stand in one sequence, because a crash may cut the write after any of them.
    """

    publish: tuple[Publication, ...] = ()
    changes: tuple[Change, ...] = ()
    closed: tuple[str, SessionClosed] | None = None
    """(service, reason) of the session that closed."""


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose predecessors changed: its history-taking evaluators are due again."""

    entry: SessionTurn
    history: tuple[SessionTurn, ...]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was placed in its session and waits for its outcomes; the session takes no other one meanwhile."""

    key: bytes
    """Of the session."""
    trace: Trace
    entry: SessionTurn
    earlier: SessionTurn | None
    """Its earlier revision in the window."""
    is_new: bool
    """It opened the session."""
    placement: Placement
    history: tuple[SessionTurn, ...]
    number: int | None
    """Its place among the turns, 1-based; None: it is not a turn."""
    reruns: tuple[Rerun, ...]


class Rescored(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of a `Rerun`."""

    entry: SessionTurn
    outcomes: tuple[Outcome, ...]
