"""Feedback in the index: kept by what it is about, joined with traces and sessions by their ids. Belongs to one change.

What is about a trace or a session that has not come yet waits: `match` finds it later, or gives it up. Whoever reads
joins by id, so that a trace that moves to another session takes what was said of it along.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from collector.api.search import word_of
from collector.records.feedback import Feedback, Opinion
from collector.records.sent_feedback import Kind
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
_IS_WAITING = "SELECT EXISTS (SELECT 1 FROM {} WHERE state = 2)"
_WAKE = "UPDATE {0} INDEXED BY {0}_of_{1} SET state = 0 WHERE state = 2 AND {2}"
_TASKS = """
UPDATE {0} SET trace_id = (
    SELECT t.trace_id FROM traces t WHERE t.id = (
        SELECT max(rowid) FROM texts WHERE texts MATCH {0}.task))
WHERE state = 0 AND task IS NOT NULL AND trace_id IS NULL"""
_FOUND = """
SELECT f.id, s.service, a.agent, s.session_id, f.name, f.kind, f.sign
FROM feedback f {} JOIN agents a ON a.id = s.agent
WHERE f.state = 0 AND f.arrived - s.last <= ?"""
BY_TRACE = "CROSS JOIN traces t ON t.trace_id = f.trace_id JOIN sessions s ON s.id = t.session"
BY_SESSION = "CROSS JOIN sessions s ON s.session_id = f.session_id AND s.service = f.service"
_SETTLE = "UPDATE {} SET state = 2 WHERE state = 0"
_LATE = "DELETE FROM {} WHERE state = 2 AND arrived < ?"
_COUNT = "SELECT count(*) FROM {} WHERE state = 2"
# Each service's newest ones stay, all services alike: what one floods with takes no place of another's.
_TOO_MANY = """
DELETE FROM {0} WHERE id IN (
    SELECT id FROM {0} WHERE state = 2
    ORDER BY row_number() OVER (PARTITION BY service ORDER BY arrived DESC, rowid DESC) LIMIT -1 OFFSET ?)"""


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
    scores_given_up: int = 0


class Waiting:
    """The rows of a table that wait for what they are about. Writes within the transaction of its change."""

    _table: ClassVar[str]

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.pushed_out = 0  # how many had no place beside others about the same

    def wake(
        self, traces: Iterable[TraceHeader] = (), sessions: Iterable[tuple[str, str]] = ()
    ) -> None:
        """These came or changed, sessions as (service, id): look again at what waits for them."""
        if not self._number(_IS_WAITING):
            return
        headers = list(traces)
        self._wake("trace", "trace_id = ?", [(each.trace_id,) for each in headers])
        tasks = [word_of("task", each.task_id) for each in headers if each.task_id is not None]
        self._wake("task", "task = ?", [(each,) for each in tasks])
        of_session = [(session_id, service) for service, session_id in sessions]
        self._wake("session", "session_id = ? AND service = ?", of_session)

    def name_traces(self) -> None:
        """Give what is about a task the trace that names it."""
        self._connection.execute(_TASKS.format(self._table))

    def settle(self, now: int) -> tuple[int, bool]:
        """What was not joined waits; how many of those are given up, and whether any goes on to wait."""
        execute = self._connection.execute
        execute(_SETTLE.format(self._table))
        given_up = execute(_LATE.format(self._table), (now - int(WAITS * 1e6),)).rowcount
        waiting = self._number(_COUNT)
        if waiting > MOST_WAITING:
            given_up += execute(_TOO_MANY.format(self._table), (MOST_WAITING,)).rowcount
        return given_up, waiting > 0

    def _wake(self, index: str, where: str, given: Iterable[Sequence[object]]) -> None:
        self._connection.executemany(_WAKE.format(self._table, index, where), given)

    def _number(self, statement: str) -> int:
        return self._connection.execute(statement.format(self._table)).fetchone()[0]


class FeedbackTable(Waiting):
    _table = "feedback"

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

    def match(self, *, now: int, max_age: int) -> Matching:
        """Join what is new with what has come; give up what waited too long. Times are microseconds.

        `max_age`: how long after its session something may be said.
        """
        execute = self._connection.execute
        self.name_traces()
        found: dict[str, Matched] = {}
        for join in (BY_TRACE, BY_SESSION):
            for ident, *names, sign in execute(_FOUND.format(join), (max_age,)):
                found.setdefault(ident, Matched._make([*names, opinion_of(sign)]))
        self._connection.executemany(
            "UPDATE feedback SET state = 1 WHERE id = ?", [(ident,) for ident in found]
        )
        return Matching([*found.values()], *self.settle(now))


def opinion_of(sign: int) -> Opinion:
    return "negative" if sign < 0 else "positive" if sign > 0 else "neutral"


def said_by_people(feedback: Iterable[Feedback]) -> Opinion | None:
    """What people think on the whole: negative if anybody does; None: no one said anything."""
    found = {each.opinion for each in feedback if each.kind == "human"}
    ranked: tuple[Opinion, ...] = ("negative", "positive", "neutral")
    return next((each for each in ranked if each in found), None)
