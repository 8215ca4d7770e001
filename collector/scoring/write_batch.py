"""Decided and not yet written: signals first, then state; the commits follow (rule 4).

Here alone the values that scoring decides become records of the log: encoded, redacted, keyed and put in a partition.
"""

from __future__ import annotations

from collections.abc import Iterable

from collector.log.port import SESSIONS, SIGNALS, TRACES, New
from collector.records.codec import encode
from collector.records.session_key import awaited_key, session_key, turn_key
from collector.records.sessions import SessionAwaited, SessionHead, SessionsTopic, SessionTurn
from collector.records.signal_codec import encode_signal, redacted, signal_headers
from collector.scoring.effects import Change, Drop, Effects, Publication

LARGE = 4096


class WriteBatch:
    """Filled by effects in order, emptied only by a write that succeeded."""

    def __init__(self, *, redact: bool = False) -> None:
        """`redact`: signals leave without texts (`redaction.content: drop`)."""
        self._redact = redact
        self._signals: list[New] = []
        self._changes: list[New] = []

    @property
    def is_large(self) -> bool:
        """Whether it should be written before more is decided."""
        return len(self._signals) + len(self._changes) >= LARGE

    def add(self, effects: Effects, *, partition: int) -> None:
        """Write the effects of a step of this partition's sessions."""
        self._signals += (signal_record(each, redact=self._redact) for each in effects.publish)
        self.add_changes(effects.changes, partition=partition)

    def add_changes(self, changes: Iterable[Change], *, partition: int) -> None:
        """Write changes alone."""
        self._changes += (change_record(each, partition) for each in changes)

    def forget(self, partition: int) -> None:
        """The partition has another owner now, who alone changes its state."""
        self._changes = [each for each in self._changes if each.partition != partition]

    @property
    def records(self) -> list[New]:
        """In the order of the write."""
        return [*self._signals, *self._changes]

    def clear(self) -> None:
        """It is written."""
        self._signals.clear()
        self._changes.clear()


def signal_record(publication: Publication, *, redact: bool) -> New:
    """The record of topic `signals`, keyed by session id."""
    signal = redacted(publication.signal) if redact else publication.signal
    return New(
        topic=SIGNALS,
        key=signal.session_id.encode(),
        value=encode_signal(signal),
        headers=signal_headers(signal, first=publication.is_first),
    )


def change_record(change: Change, partition: int) -> New:
    """The record of topic `sessions`, or of `traces` for a report."""
    if isinstance(change, Drop):
        key = state_key(change.state)
        return New(topic=SESSIONS, key=key, value=None, partition=partition)
    if isinstance(change, SessionHead | SessionTurn | SessionAwaited):
        key = state_key(change)
        return New(topic=SESSIONS, key=key, value=encode(change), partition=partition)
    key = session_key(change.service, change.session_id)
    return New(topic=TRACES, key=key, value=encode(change), partition=partition)


def state_key(state: SessionsTopic) -> bytes:
    """The session's key, extended for its traces and for the verdict that it waits for."""
    key = session_key(state.service, state.session_id)
    if isinstance(state, SessionTurn):
        return turn_key(key, state.turn.trace_id)
    if isinstance(state, SessionAwaited):
        return awaited_key(key, state.digest)
    return key
