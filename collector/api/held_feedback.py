"""Feedback in the index: kept by what it is about, joined with traces and sessions by their ids. Belongs to one change.

What is about a trace or a session that has not come yet waits: `match` finds it later, or gives it up. Whoever reads
joins by id, so that a trace that moves to another session takes what was said of it along.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from collector.api.search import word_of
from collector.records.feedback import Feedback, Kind, Opinion
from collector.records.trace_views import TraceHeader

WAITS = 3600.0  # seconds that feedback waits for what it is about
MOST_WAITING = 20_000
MOST_OF_A_SUBJECT = 100
"""Of one trace or session; more push out the oldest."""
SIGNS: dict[Opinion, int] = {"negative": -1, "neutral": 0, "positive": 1}
# States: 0 new, 1 joined, 2 waits. What waits is new again once something came that it may be about, so that a look
# costs what came since the last one.
_PUT = """
INSERT OR REPLACE INTO feedback (id, trace_id, service, session_id, task, arrived, state, name, kind, sign, json)
VALUES (?, ?, ?, ?, ?, ?, coalesce((SELECT state FROM feedback WHERE id = ? AND state = 1), 0),
        ?, ?, ?, ?)"""
_SURPLUS = """
DELETE FROM feedback WHERE id IN (
    SELECT id FROM feedback WHERE {} ORDER BY arrived DESC, rowid DESC LIMIT -1 OFFSET ?)"""
# Each with what its index has: asked for all columns at once, SQLite reads all that is about traces, under NULL.
_OF_TRACE = _SURPLUS.format("trace_id = ? AND task IS NULL")
_OF_SESSION = _SURPLUS.format("session_id = ? AND service = ?")
_OF_TASK = _SURPLUS.format("task = ?")
_IS_WAITING = "SELECT EXISTS (SELECT 1 FROM feedback WHERE state = 2)"
_WAKE = "UPDATE feedback INDEXED BY {} SET state = 0 WHERE state = 2 AND {}"
_WAKE_TRACE = _WAKE.format("feedback_of_trace", "trace_id = ?")
_WAKE_SESSION = _WAKE.format("feedback_of_session", "session_id = ? AND service = ?")
_WAKE_TASK = _WAKE.format("feedback_of_task", "task = ?")
_TASKS = """
UPDATE feedback SET trace_id = (
    SELECT t.trace_id FROM traces t WHERE t.id = (
        SELECT max(rowid) FROM texts WHERE texts MATCH feedback.task))
WHERE state = 0 AND task IS NOT NULL AND trace_id IS NULL"""
_FOUND = """
SELECT f.id, s.service, a.agent, s.session_id, f.name, f.kind, f.sign
FROM feedback f {} JOIN agents a ON a.id = s.agent
WHERE f.state = 0 AND f.arrived - s.last <= ?"""
_BY_TRACE = "CROSS JOIN traces t ON t.trace_id = f.trace_id JOIN sessions s ON s.id = t.session"
_BY_SESSION = "CROSS JOIN sessions s ON s.session_id = f.session_id AND s.service = f.service"
_SETTLE = "UPDATE feedback SET state = 2 WHERE state = 0"
_LATE = "DELETE FROM feedback WHERE state = 2 AND arrived < ?"
_TOO_MANY = """
DELETE FROM feedback WHERE id IN (
    SELECT id FROM feedback WHERE state = 2 ORDER BY arrived DESC LIMIT -1 OFFSET ?)"""


class Matched(NamedTuple):
    service: str
    agent: str
    session_id: str
    name: str
    kind: Kind
    opinion: Opinion


class Matching(NamedTuple):
    matched: list[Matched]
    given_up: int
    is_waiting: bool  # whether any goes on to wait


class HeldFeedback:
    """Writes within the transaction of its change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.pushed_out = 0  # how many had to go for newer ones about the same

    def put(self, said: Feedback, json: bytes, arrived: int) -> None:
        """Keep it; the same id replaces. `arrived`: log time, unix microseconds."""
        task = None if said.task_id is None else word_of("task", said.task_id)
        subject = (said.trace_id, said.service, said.session_id, task)
        sign = SIGNS[said.opinion]
        row = (said.id, *subject, arrived, said.id, said.name, said.kind, sign, json)
        self._connection.execute(_PUT, row)
        # What is said of a task has a trace id once it is joined, and is still of that task.
        few, about = _OF_SESSION, (said.session_id, said.service)
        if task is not None:
            few, about = _OF_TASK, (task,)
        elif said.trace_id is not None:
            few, about = _OF_TRACE, (said.trace_id,)
        surplus = self._connection.execute(few, (*about, MOST_OF_A_SUBJECT))
        self.pushed_out += surplus.rowcount

    def wake(
        self, traces: Iterable[TraceHeader] = (), sessions: Iterable[tuple[str, str]] = ()
    ) -> None:
        """These came or changed, sessions as (service, id): look again at what waits for them."""
        if not self._connection.execute(_IS_WAITING).fetchone()[0]:
            return
        wake = self._connection.executemany
        headers = list(traces)
        wake(_WAKE_TRACE, [(each.trace_id,) for each in headers])
        tasks = [word_of("task", each.task_id) for each in headers if each.task_id is not None]
        wake(_WAKE_TASK, [(each,) for each in tasks])
        wake(_WAKE_SESSION, [(session_id, service) for service, session_id in sessions])

    def match(self, *, now: int, max_age: int) -> Matching:
        """Join what is new with what has come; give up what waited too long. Times are microseconds.

        `max_age`: how long after its session something may be said.
        """
        execute = self._connection.execute
        execute(_TASKS)
        found: dict[str, Matched] = {}
        for join in (_BY_TRACE, _BY_SESSION):
            for ident, *names, sign in execute(_FOUND.format(join), (max_age,)):
                found.setdefault(ident, Matched._make([*names, opinion_of(sign)]))
        self._connection.executemany(
            "UPDATE feedback SET state = 1 WHERE id = ?", [(ident,) for ident in found]
        )
        execute(_SETTLE)
        given_up = execute(_LATE, (now - int(WAITS * 1e6),)).rowcount
        given_up += execute(_TOO_MANY, (MOST_WAITING,)).rowcount
        is_waiting = bool(execute(_IS_WAITING).fetchone()[0])
        return Matching([*found.values()], given_up, is_waiting)


def opinion_of(sign: int) -> Opinion:
    return "negative" if sign < 0 else "positive" if sign > 0 else "neutral"


def said_by_people(feedback: Iterable[Feedback]) -> Opinion | None:
    """What people think on the whole: negative if anybody does; None: no one said anything."""
    found = {each.opinion for each in feedback if each.kind == "human"}
    ranked: tuple[Opinion, ...] = ("negative", "positive", "neutral")
    return next((each for each in ranked if each in found), None)
