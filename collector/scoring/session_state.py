"""What one session writes of itself: its state to topic `sessions`, its end to topic `traces`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace as amended

from collector.log.port import SESSIONS, TRACES, New
from collector.records.codec import encode
from collector.records.session_key import turn_key
from collector.records.sessions import SessionAwaited, SessionHead, SessionTurn
from collector.records.traces import RunRecord, SessionRecord
from collector.scoring.awaited import awaited_state


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """Makes the records of the session of this key; the caller puts them in the order that a crash may cut."""

    key: bytes
    partition: int

    def head(self, head: SessionHead) -> New:
        """The session itself, in place of its earlier head."""
        return self._state(self.key, encode(head))

    def turn(self, entry: SessionTurn) -> New:
        """One trace of it, in place of what was stored of the trace before."""
        return self._state(turn_key(self.key, entry.turn.trace_id), encode(entry))

    def no_turn(self, entry: SessionTurn) -> New:
        """The tombstone of a trace that it holds no longer."""
        return self._state(turn_key(self.key, entry.turn.trace_id), None)

    def awaited(self, awaited: SessionAwaited) -> New:
        """What a judge must still say of it after its end."""
        return awaited_state(self.key, awaited, self.partition)

    def report(self, record: SessionRecord | RunRecord) -> New:
        """What the other rooms learn of its end."""
        return New(topic=TRACES, key=self.key, value=encode(record), partition=self.partition)

    def _state(self, key: bytes, value: bytes | None) -> New:
        return New(topic=SESSIONS, key=key, value=value, partition=self.partition)


def named_after(head: SessionHead, newest: SessionTurn | None) -> SessionHead:
    """The head with the agent of the window's newest trace; as it was when the window is empty."""
    if newest is None:
        return head
    return amended(
        head,
        agent=newest.agent,
        agent_version=newest.agent_version,
        session_source=newest.session_source,
    )
