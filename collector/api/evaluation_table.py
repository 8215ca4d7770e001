"""Scores of others in the index: kept until their trace or session is there, then due as signals. Of one change.

    put -> match (joined with what has come: due) -> due (as signals) -> published

A crash before `published` makes the same signals again, byte for byte.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from collector.api.feedback_table import BY_SESSION, BY_TRACE, MOST_OF_A_SUBJECT, Waiting
from collector.api.reading import Reading
from collector.api.search import word_of
from collector.api.store import SessionEntry, micros, whole
from collector.records.external import EvaluationRules
from collector.records.feedback import Feedback, decode_feedback
from collector.records.sent_feedback import slug
from collector.records.signal import Signal, unix_seconds
from collector.records.signal_batch import NewSignal, made
from collector.records.subject import Subject, shared_fields
from collector.records.trace_views import trace_subject

MOST_NAMES = 64
"""External evaluators of an agent."""
QUIET = 3600 * 1_000_000
"""Microseconds without a score after which an evaluator gives its place to another one."""
_AT_ONCE = 256  # scores that become signals with one write
# States: those of feedback, and 3: joined, its signal is due.
_PUT = """
INSERT INTO evaluations (id, trace_id, service, session_id, task, arrived, state, name, time, sent, json)
VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, 0, ?) ON CONFLICT (id) DO UPDATE SET
    arrived = excluded.arrived, state = 0, time = excluded.time, json = excluded.json"""
_DUE = """
UPDATE evaluations SET state = 3 WHERE state = 0 AND id IN (
    SELECT f.id FROM evaluations f {} WHERE f.state = 0 AND f.arrived - s.last <= ? AND {})"""
# Each service's oldest ones first, all services alike: who waits with thousands does not let others wait.
_NEXT = """
SELECT id, json, time, arrived, trace_id FROM evaluations WHERE rowid IN (
    SELECT e.rowid FROM evaluations e LEFT JOIN traces t ON t.trace_id = e.trace_id
        LEFT JOIN sessions s ON s.id = t.session WHERE e.state = 3
    ORDER BY row_number() OVER (PARTITION BY coalesce(s.service, e.service) ORDER BY e.arrived, e.rowid)
    LIMIT ?) ORDER BY arrived, rowid"""
_ABOUT = {"trace": "trace_id = ?", "session": "session_id = ? AND service = ?", "task": "task = ?"}
_COUNT = "SELECT count(*) FROM evaluations WHERE {}"
_SENT = "SELECT EXISTS (SELECT 1 FROM evaluations WHERE {} AND name = ? AND sent = 1)"
_FORGET = "DELETE FROM externals WHERE service = ? AND agent = ? AND evaluator = ?"
_NOTE = """
INSERT INTO externals VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    name = excluded.name, source = excluded.source, version = excluded.version, count = count + 1,
    failed = failed + excluded.failed, undecided = undecided + excluded.undecided,
    low = min(ifnull(low, excluded.low), ifnull(excluded.low, low)),
    high = max(ifnull(high, excluded.high), ifnull(excluded.high, high)),
    error = excluded.error, last = max(last, excluded.last)"""


class DueScore(NamedTuple):
    id: str
    said: Feedback
    signal: Signal
    ready: NewSignal
    arrived: int  # microseconds


class EvaluationTable(Waiting):
    _table = "evaluations"

    def put(self, said: Feedback, json: bytes, arrived: int) -> None:
        """Keep a score: of one id the newest, by its time, at most `arrived`. The same again changes nothing."""
        execute = self._connection.execute
        time = min(arrived, whole(micros(unix_seconds(said.time))))
        task = None if said.task_id is None else word_of("task", said.task_id)
        origin = said.evaluation
        service = said.service or (origin and origin.sender)
        known = execute("SELECT time, json FROM evaluations WHERE id = ?", (said.id,)).fetchone()
        if known is None:
            kind, about = said.subject
            given = (about, service) if kind == "session" else (task if kind == "task" else about,)
            if execute(_COUNT.format(_ABOUT[kind]), given).fetchone()[0] >= MOST_OF_A_SUBJECT:
                self.pushed_out += 1
                return
        elif time <= known[0] or replace(decode_feedback(known[1]), time=said.time) == said:
            return
        row = (said.id, said.trace_id, service, said.session_id, task, arrived)
        execute(_PUT, (*row, slug(said.name), time, json))

    def match(self, *, now: int, max_age: int) -> tuple[int, bool]:
        """As `FeedbackTable.match`; how many were given up, and whether any waits or is due."""
        self.name_traces()
        # A trace or session of which only signals are here has its place later.
        for join, is_there in (
            (BY_TRACE, "t.log_offset IS NOT NULL"),
            (BY_SESSION, "s.newest >= 0"),
        ):
            self._connection.execute(_DUE.format(join, is_there), (max_age,))
        given_up, is_waiting = self.settle(now)
        due = self._connection.execute("SELECT EXISTS (SELECT 1 FROM evaluations WHERE state = 3)")
        return given_up, is_waiting or bool(due.fetchone()[0])

    def due(self, reading: Reading, rules: EvaluationRules) -> tuple[list[DueScore], int]:
        """The next scores as signals; and how many found no place for their evaluator, and were dropped."""
        found: list[DueScore] = []
        gone: list[tuple[str]] = []
        taken: set[tuple[object, ...]] = set()
        rows = self._connection.execute(_NEXT, (_AT_ONCE,)).fetchall()
        names: dict[tuple[str, str], dict[str, int]] = {}
        for ident, json, time, arrived, trace_id in rows:
            said = decode_feedback(json)
            subject = _subject(reading, said, trace_id, time)
            evaluator = rules.evaluator(said.name)
            if subject is None or not self._has_place(names, subject, evaluator, arrived):
                gone.append((ident,))
                continue
            signal = rules.signal(said, subject)
            whose = subject.scope, subject.service, subject.trace_id, subject.session_id
            about = (*whose, evaluator)
            is_first = about not in taken and not self._was_sent(said, subject)
            taken.add(about)
            ready = made(signal, first=is_first, start=subject.start)
            found.append(DueScore(ident, said, signal, ready, arrived))
        self._connection.executemany("DELETE FROM evaluations WHERE id = ?", gone)
        return found, len(gone)

    def published(self, due: Sequence[DueScore]) -> None:
        """The signals are in the log."""
        execute = self._connection.executemany
        execute(
            "UPDATE evaluations SET state = 1, sent = 1 WHERE id = ?", [(each.id,) for each in due]
        )
        execute(_NOTE, [tuple(_noted(each)) for each in due])

    def _was_sent(self, said: Feedback, subject: Subject) -> bool:
        """Whether a signal of this evaluator about the subject was: counters count the first one alone."""
        kind, about = said.subject
        of = "trace_id = ?" if kind == "task" else _ABOUT[kind]
        given = (about, said.service) if kind == "session" else (subject.trace_id or about,)
        found = self._connection.execute(_SENT.format(of), (*given, slug(said.name)))
        return bool(found.fetchone()[0])

    def _has_place(
        self,
        names: dict[tuple[str, str], dict[str, int]],
        subject: Subject,
        evaluator: str,
        now: int,
    ) -> bool:
        """Whether the evaluator is one of its agent's; of those that are quiet, the least used one may go for it."""
        agent = (subject.service, subject.agent)
        if agent not in names:
            rows = self._connection.execute(
                "SELECT evaluator, last FROM externals WHERE service = ? AND agent = ?", agent
            )
            names[agent] = dict(rows.fetchall())
        of_agent = names[agent]
        if evaluator not in of_agent and len(of_agent) >= MOST_NAMES:
            quiet = min(of_agent, key=lambda each: of_agent[each])
            if of_agent[quiet] > now - QUIET:
                return False
            self._connection.execute(_FORGET, (*agent, quiet))
            del of_agent[quiet]
        of_agent[evaluator] = max(now, of_agent.get(evaluator, 0))
        return True


def _noted(due: DueScore) -> Iterator[object]:
    """The row of `externals` for one score."""
    signal, origin = due.signal, due.said.evaluation
    yield from (signal.service, signal.agent, signal.evaluator, due.said.name)
    yield from (origin and origin.source, origin and origin.version)
    yield int(signal.outcome == "failed")
    yield int(signal.outcome == "scored" and signal.success is None)
    yield from (due.said.value, due.said.value)
    yield signal.error and signal.error.message
    yield due.arrived


def _subject(
    reading: Reading, said: Feedback, trace_id: str | None, revision: int
) -> Subject | None:
    """What a score is about; None: it has gone from the index since."""
    trace = None if trace_id is None else reading.trace(trace_id)
    origin = said.evaluation
    if trace is not None and (origin is None or origin.scope != "session"):
        return trace_subject(trace.header, revision=revision)
    if trace is not None:
        session = reading.session(trace.row.session)
        row = trace.row.session
    else:
        found = reading.session_by_name(said.service or "", said.session_id or "")
        row, session = found or (0, None)
    return None if session is None else _of_session(reading, row, session, revision)


def _of_session(reading: Reading, row: int, session: SessionEntry, revision: int) -> Subject:
    first = reading.connection.execute(
        "SELECT trace_id FROM traces WHERE session = ? ORDER BY start, trace_id LIMIT 1", (row,)
    ).fetchone()
    newest = reading.newest_trace(row)
    of_session: dict[str, Any] = {
        "closed": session.closed,
        "started": 1000 * (session.started or 0),
    }
    return Subject(
        scope="session",
        seen=session.last / 1e6,
        revision=revision,
        first_trace=first and first[0],
        newest_trace=newest and newest.header.trace_id,
        **shared_fields(session, Subject) | of_session,
    )
