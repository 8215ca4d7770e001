"""The sums of agents that a change touches: read once, written once."""

from __future__ import annotations

from collector.api.reading import Reading
from collector.api.store import AgentEntry, SessionEntry

_REPLACE = "INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class AgentSums:
    """Belongs to one change."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._held: dict[tuple[str, str, str], tuple[int, AgentEntry]] = {}
        self._next: int | None = None

    def count(self, session: SessionEntry, sign: int) -> int:
        """Add a session to its agent's sums, or take it out; the agent's row."""
        row, agent = self._load(session)
        if agent.sessions <= 0:  # its last session has just left: it begins again
            agent = _begin(session)
            self._held[agent.service, agent.agent, agent.agent_version or ""] = (row, agent)
        agent.sessions += sign
        agent.traces += sign * session.traces
        agent.last = max(agent.last, session.last)
        if session.reliability is not None:
            agent.scored += sign
        elif session.unscored is not None and sign > 0:
            agent.unscored = session.unscored
        return row

    def write(self) -> None:
        """Write every agent that was touched."""
        execute = self._reading.connection.execute
        for row, agent in self._held.values():
            if agent.sessions <= 0:
                execute("DELETE FROM agents WHERE id = ?", (row,))
            else:
                name = (agent.service, agent.agent, agent.agent_version)
                sums = (agent.sessions, agent.traces, agent.last, agent.scored, agent.unscored)
                execute(_REPLACE, (row, *name, *sums))
        self._held.clear()

    def _load(self, session: SessionEntry) -> tuple[int, AgentEntry]:
        key = (session.service, session.agent, session.agent_version or "")
        held = self._held.get(key)
        if held is None:
            held = self._reading.agent(*key) or (self._new_row(), _begin(session))
            self._held[key] = held
        return held

    def _new_row(self) -> int:
        row = self._next
        if row is None:
            last = self._reading.connection.execute("SELECT max(id) FROM agents").fetchone()[0]
            row = (last or 0) + 1
        self._next = row + 1
        return row


def _begin(session: SessionEntry) -> AgentEntry:
    return AgentEntry(
        service=session.service, agent=session.agent, agent_version=session.agent_version
    )
