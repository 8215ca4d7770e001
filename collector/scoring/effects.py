"""What a desk wants done: values, so that the shell alone writes and counts."""

from __future__ import annotations

from typing import Literal

import msgspec

from collector.log.port import New
from collector.records.sessions import SessionTurn
from collector.records.traces import TraceRecord
from collector.scoring.session_window import Placed
from evaluators.model import Outcome

SessionClosed = Literal["idle", "max_age", "memory", "shutdown"]


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Records to write, all signals of a batch before all its state, state in the order of the effects (rule 4)."""

    signals: tuple[New, ...] = ()
    state: tuple[New, ...] = ()
    closed: tuple[str, SessionClosed] | None = None
    """(service, reason) of the session that closed."""


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose predecessors changed: its history-taking evaluators are due again."""

    entry: SessionTurn
    history: tuple[SessionTurn, ...]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A trace record that was taken and waits for its outcomes; its session takes no other one meanwhile."""

    key: bytes
    record: TraceRecord
    entry: SessionTurn
    held: SessionTurn | None
    """Its earlier revision."""
    is_new: bool
    """It opened the session."""
    placed: Placed
    history: tuple[SessionTurn, ...]
    turn: int | None
    """Its place among the turns, 1-based; None: it is none."""
    reruns: tuple[Rerun, ...]


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to a `Rerun`."""

    record: TraceRecord
    """The turn's own, read back from the log."""
    outcomes: tuple[Outcome, ...]
