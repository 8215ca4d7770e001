"""What one desk waits for from the judge: traces of open sessions, and sessions that have closed. Pure.

A verdict is too late when `judge.max_lag` of log time has passed since its subject's record. The desk then appends one
itself, `skipped{judge_lag}`, so that every due outcome becomes final though the judge is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from collector.log.port import SESSIONS, TRACES, New
from collector.records.codec import encode
from collector.records.session_key import awaited_key, session_key
from collector.records.sessions import SessionAwaited, SessionTurn
from collector.records.traces import VerdictRecord
from collector.scoring.effects import Effects
from collector.scoring.emit import Subject, outcome_signal, session_signal_id
from collector.scoring.ports import Rules
from collector.scoring.task_run import awaits, run_of
from evaluators.model import Outcome

Find = Callable[[bytes, str], SessionTurn | None]


class Awaited:
    """Subjects in the order of their records' log times."""

    def __init__(self, *, partition: int, rules: Rules, most: int, redact: bool) -> None:
        self._partition = partition
        self._rules = rules
        self._most = most
        self._redact = redact
        self._traces: dict[tuple[bytes, str], float] = {}
        self._sessions: dict[tuple[bytes, str], SessionAwaited] = {}
        self._told: set[tuple[bytes, str]] = set()
        """Sessions whose late verdict is in the log, or on its way there."""

    def trace(self, key: bytes, trace_id: str, time: float) -> None:
        """Wait for a verdict about a trace whose record has this log time."""
        if self._traces.get((key, trace_id), -1.0) < time:
            self._traces.pop((key, trace_id), None)
            self._traces[key, trace_id] = time

    def forget(self, key: bytes, trace_id: str) -> None:
        """Its verdict came, or nobody waits for it any more."""
        self._traces.pop((key, trace_id), None)

    def restore(self, session: SessionAwaited) -> Iterator[New]:
        """After a restart; a tombstone when no judge of today is asked for what was due."""
        names = {each.spec.name for each in self._rules.judged.session}
        due = tuple(name for name in session.due if name in names)
        if due:
            self.put_back(msgspec.structs.replace(session, due=due))
        else:
            key = session_key(session.service, session.session_id)
            yield from self._run(key, session, _subject(session, 0), ())
            yield self._tombstone(key, session)

    def put_back(self, session: SessionAwaited) -> None:
        """Wait for a verdict about a closed session."""
        at = (session_key(session.service, session.session_id), session.digest)
        self._sessions.pop(at, None)
        self._sessions[at] = session
        self._told.discard(at)

    def sort(self) -> None:
        """After a restart: oldest first."""
        self._traces = dict(sorted(self._traces.items(), key=lambda each: each[1]))
        ordered = sorted(self._sessions.items(), key=lambda each: each[1].closed_at)
        self._sessions = dict(ordered)

    def lapsed(self, now: float, find: Find) -> Iterator[New]:
        """The verdicts that must be given now, because nobody else's came in time."""
        limit = now - self._rules.judged.max_lag
        while self._traces:
            (key, trace_id), time = next(iter(self._traces.items()))
            if time > limit:
                break
            del self._traces[key, trace_id]
            entry = find(key, trace_id)
            if entry is None:
                continue
            if entry.placed_at > limit:  # revised meanwhile
                self.trace(key, trace_id, entry.placed_at)
            else:
                yield self._late_trace(key, entry)
        yield from self._late_sessions(limit)

    def on_verdict(self, record: VerdictRecord, *, key: bytes, offset: int) -> Iterator[Effects]:
        """The final signals of a closed session."""
        at = (key, record.digest)
        held = self._sessions.get(at)
        if held is None:
            return
        outcomes = [each for each in record.outcomes if each.evaluator in held.due]
        given = {each.evaluator for each in outcomes}
        subject = _subject(held, offset)
        signals = tuple(
            outcome_signal(
                subject,
                each,
                session_signal_id(subject, each, held.digest),
                first=True,
                rules=self._rules,
                redact=self._redact,
            )
            for each in outcomes
            if each.evaluator in self._rules.emitted
        )
        left = tuple(name for name in held.due if name not in given)
        name = self._rules.task_evaluator
        run = self._run(key, held, subject, outcomes) if name in given else ()
        if left:
            self._sessions[at] = held = msgspec.structs.replace(held, due=left)
            state = awaited_state(key, held, self._partition)
        else:
            del self._sessions[at]
            self._told.discard(at)
            state = self._tombstone(key, held)
        yield Effects(signals=signals, state=(*run, state))

    def _run(
        self, key: bytes, held: SessionAwaited, subject: Subject, outcomes: Iterable[Outcome]
    ) -> tuple[New, ...]:
        """The task run that the session was, if it was for this verdict to decide it."""
        name = self._rules.task_evaluator
        if not awaits(held, name):
            return ()
        run = run_of(held.task, subject, outcomes, evaluator=name)
        if run is None:
            return ()
        return (New(topic=TRACES, key=key, value=encode(run), partition=self._partition),)

    def _tombstone(self, key: bytes, held: SessionAwaited) -> New:
        at = awaited_key(key, held.digest)
        return New(topic=SESSIONS, key=at, value=None, partition=self._partition)

    def _late_sessions(self, limit: float) -> Iterator[New]:
        surplus = len(self._sessions) - len(self._told) - self._most
        for at, held in self._sessions.items():
            if held.closed_at > limit and surplus <= 0:
                break
            if at in self._told:
                continue
            self._told.add(at)
            surplus -= 1
            reason = "judge_lag" if held.closed_at <= limit else "overload"
            yield self._late_session(at[0], held, reason)

    def _late_trace(self, key: bytes, entry: SessionTurn) -> New:
        record = VerdictRecord(
            scope="trace",
            service=entry.service,
            session_id=entry.session_id,
            subject=entry.turn.trace_id,
            digest=entry.turn.digest,
            outcomes=self._rules.judged.skipped("trace", "judge_lag", entry.due),
        )
        return New(topic=TRACES, key=key, value=encode(record), partition=self._partition)

    def _late_session(self, key: bytes, held: SessionAwaited, reason: str) -> New:
        record = VerdictRecord(
            scope="session",
            service=held.service,
            session_id=held.session_id,
            subject=held.session_id,
            digest=held.digest,
            outcomes=self._rules.judged.skipped("session", reason, held.due),
        )
        return New(topic=TRACES, key=key, value=encode(record), partition=self._partition)


def awaited_state(key: bytes, held: SessionAwaited, partition: int) -> New:
    """The record of `sessions` that survives a restart."""
    return New(
        topic=SESSIONS, key=awaited_key(key, held.digest), value=encode(held), partition=partition
    )


def _subject(held: SessionAwaited, offset: int) -> Subject:
    return Subject(
        scope="session",
        service=held.service,
        session_id=held.session_id,
        session_source=held.session_source,
        agent=held.agent,
        agent_version=held.agent_version,
        seen=held.seen,
        revision=offset,
        closed=held.closed,
    )
