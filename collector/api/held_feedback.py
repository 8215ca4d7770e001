"""Feedback in the index: kept by what it is about, joined with traces and sessions by their ids. Belongs to one change.

What is about a trace or a session that has not come yet waits: `match` finds it later, or gives it up. Whoever reads
joins by id, so that a trace that moves to another session takes what was said of it along.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import NamedTuple

from collector.api.search import word_of
from collector.records.feedback import Feedback, Kind, Opinion

WAITS = 3600.0
"""Seconds that feedback waits for what it is about."""
MOST_WAITING = 20_000
MOST_TASKS = 1_000
"""Of those that wait for a task: how many are looked for at once, the newest."""
MOST_OF_A_SUBJECT = 100
"""Of one trace or session; more push out the oldest."""
SIGNS: dict[Opinion, int] = {"negative": -1, "neutral": 0, "positive": 1}
_PUT = """
INSERT OR REPLACE INTO feedback (id, trace_id, service, session_id, task, arrived, matched, name, kind, sign, json)
VALUES (?, ?, ?, ?, ?, ?, coalesce((SELECT matched FROM feedback WHERE id = ?), 0), ?, ?, ?, ?)"""
_SURPLUS = """
DELETE FROM feedback WHERE id IN (
    SELECT id FROM feedback WHERE {} ORDER BY arrived DESC, rowid DESC LIMIT -1 OFFSET ?)"""
_OF_TASK = _SURPLUS.format("task = ?")
_OF_OTHERS = _SURPLUS.format("trace_id IS ? AND service IS ? AND session_id IS ? AND task IS NULL")
_TASKS = """
UPDATE feedback SET trace_id = (
    SELECT t.trace_id FROM traces t WHERE t.id = (
        SELECT max(rowid) FROM texts WHERE texts MATCH feedback.task))
WHERE id IN (
    SELECT id FROM feedback WHERE matched = 0 AND task IS NOT NULL AND trace_id IS NULL
    ORDER BY arrived DESC LIMIT ?)"""
_FOUND = """
SELECT f.id, s.service, a.agent, s.session_id, f.name, f.kind, f.sign
FROM feedback f {} JOIN agents a ON a.id = s.agent
WHERE f.matched = 0 AND f.arrived - s.last <= ?"""
_BY_TRACE = "JOIN traces t ON t.trace_id = f.trace_id JOIN sessions s ON s.id = t.session"
_BY_SESSION = "JOIN sessions s ON s.session_id = f.session_id AND s.service = f.service"
_WAITING = "SELECT count(*) FROM feedback WHERE matched = 0"


class Matched(NamedTuple):
    """Feedback whose trace or session is in the index."""

    service: str
    agent: str
    session_id: str
    name: str
    kind: Kind
    opinion: Opinion


class Matching(NamedTuple):
    """What one look at the waiting feedback found."""

    matched: list[Matched]
    given_up: int
    waiting: int


class HeldFeedback:
    """Writes within the transaction of its change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.pushed_out = 0
        """How many had to go for newer ones about the same."""

    def put(self, said: Feedback, json: bytes, arrived: int) -> None:
        """Keep it; the same id replaces. `arrived`: log time, unix microseconds."""
        task = None if said.task_id is None else word_of("task", said.task_id)
        subject = (said.trace_id, said.service, said.session_id, task)
        sign = SIGNS[said.opinion]
        row = (said.id, *subject, arrived, said.id, said.name, said.kind, sign, json)
        self._connection.execute(_PUT, row)
        # What is said of a task has a trace id once it is joined, and is still of that task.
        few, about = (_OF_OTHERS, subject[:3]) if task is None else (_OF_TASK, (task,))
        surplus = self._connection.execute(few, (*about, MOST_OF_A_SUBJECT))
        self.pushed_out += surplus.rowcount

    def match(self, *, now: int, max_age: int) -> Matching:
        """Join what waits with what has come; give up what waited too long. Times are microseconds.

        `max_age`: how long after its session something may be said.
        """
        execute = self._connection.execute
        execute(_TASKS, (MOST_TASKS,))
        found: list[Matched] = []
        ids: set[str] = set()
        for join in (_BY_TRACE, _BY_SESSION):
            for ident, service, agent, session_id, name, kind, sign in execute(
                _FOUND.format(join), (max_age,)
            ):
                if ident not in ids:
                    ids.add(ident)
                    opinion = opinion_of(sign)
                    found.append(Matched(service, agent, session_id, name, kind, opinion))
        self._connection.executemany(
            "UPDATE feedback SET matched = 1 WHERE id = ?", [(ident,) for ident in ids]
        )
        given_up = self._give_up(now)
        return Matching(found, given_up, execute(_WAITING).fetchone()[0])

    def forget_traces(self, trace_ids: Collection[str]) -> None:
        """Traces left the index, and what was said of them goes too."""
        self._connection.executemany(
            "DELETE FROM feedback WHERE trace_id = ?", [(each,) for each in trace_ids]
        )

    def forget_session(self, service: str, session_id: str) -> None:
        self._connection.execute(
            "DELETE FROM feedback WHERE session_id = ? AND service = ?", (session_id, service)
        )

    def _give_up(self, now: int) -> int:
        execute = self._connection.execute
        late = execute(
            "DELETE FROM feedback WHERE matched = 0 AND arrived < ?", (now - int(WAITS * 1e6),)
        )
        surplus = execute(
            "DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE matched = 0"
            " ORDER BY arrived DESC LIMIT -1 OFFSET ?)",
            (MOST_WAITING,),
        )
        return late.rowcount + surplus.rowcount


def opinion_of(sign: int) -> Opinion:
    return "negative" if sign < 0 else "positive" if sign > 0 else "neutral"


def said_by_people(feedback: Iterable[Feedback]) -> Opinion | None:
    """What people think on the whole: negative if anybody does; None: no one said anything."""
    found = {each.opinion for each in feedback if each.kind == "human"}
    ranked: tuple[Opinion, ...] = ("negative", "positive", "neutral")
    return next((each for each in ranked if each in found), None)
