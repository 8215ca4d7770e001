"""The verdicts that one partition's sessions wait for: about traces of open sessions, and about closed ones. Pure.

A verdict is too late when `judge.max_lag` of log time has passed since its subject's record. Scoring then appends one
itself, `skipped{judge_lag}`, so that every due outcome becomes final though the judge is dead. It goes through the
log, where the first verdict about a subject wins (rule 6).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from collector.records.sessions import SessionAwaited, SessionTurn, session_key
from collector.records.subject import Subject
from collector.records.traces import RunRecord, VerdictRecord
from collector.scoring.effects import Change, Effects, Tombstone
from collector.scoring.outcome_signals import OutcomeSignals
from collector.scoring.rules import Rules
from collector.scoring.session_end import is_undecided, task_run
from evaluators.model import Outcome

FindTrace = Callable[[bytes, str], SessionTurn | None]
"""(session key, trace id) -> the trace, if it still waits for a verdict."""


@dataclass(slots=True, kw_only=True)
class PendingVerdicts:
    """Subjects in the order of their records' log times."""

    rules: Rules
    max_sessions: int  # closed sessions that may wait; the verdicts of older ones are given up
    _signals: OutcomeSignals = field(init=False)
    _traces: dict[tuple[bytes, str], float] = field(default_factory=dict[tuple[bytes, str], float])
    _sessions: dict[tuple[bytes, str], SessionAwaited] = field(
        default_factory=dict[tuple[bytes, str], SessionAwaited]
    )
    _timed_out: set[tuple[bytes, str]] = field(default_factory=set[tuple[bytes, str]])
    """Sessions whose skipped verdict is in the log, or on its way there."""

    def __post_init__(self) -> None:
        self._signals = OutcomeSignals(rules=self.rules)

    def add_trace(self, key: bytes, trace_id: str, time: float) -> None:
        """Wait for a verdict about a trace whose record has this log time."""
        if self._traces.get((key, trace_id), -1.0) < time:
            self._traces.pop((key, trace_id), None)
            self._traces[key, trace_id] = time

    def remove_trace(self, key: bytes, trace_id: str) -> None:
        self._traces.pop((key, trace_id), None)

    def add_session(self, session: SessionAwaited) -> None:
        about = session.subject
        subject = (session_key(about.service, about.session_id), session.digest)
        self._sessions.pop(subject, None)
        self._sessions[subject] = session
        self._timed_out.discard(subject)

    def restore(self, session: SessionAwaited) -> Iterator[Change]:
        """Take a closed session back after a restart.

        If all the evaluators that it waits for are off since then, it waits no longer: the changes end it.
        """
        judged = self.rules.judged
        names = {each.spec.name for each in (*judged.session, *judged.session_plugins)}
        due = tuple(name for name in session.due if name in names)
        if due:
            self.add_session(replace(session, due=due))
            return
        yield from self._decided_run(session, session.subject, ())
        yield Tombstone(state=session)

    def sort(self) -> None:
        self._traces = dict(sorted(self._traces.items(), key=lambda each: each[1]))
        ordered = sorted(self._sessions.items(), key=lambda each: each[1].closed_at)
        self._sessions = dict(ordered)

    def expired(self, now: float, find: FindTrace) -> Iterator[VerdictRecord]:
        """The skipped verdicts that must be given now, because no other came in time."""
        limit = now - self.rules.judged.max_lag
        while self._traces:
            (key, trace_id), time = next(iter(self._traces.items()))
            if time > limit:
                break
            del self._traces[key, trace_id]
            entry = find(key, trace_id)
            if entry is None:
                continue
            if entry.placed_at > limit:  # revised meanwhile
                self.add_trace(key, trace_id, entry.placed_at)
            else:
                yield self._skipped("trace", entry, entry.turn.digest, "judge_lag")
        yield from self._expired_sessions(limit)

    def _expired_sessions(self, limit: float) -> Iterator[VerdictRecord]:
        surplus = len(self._sessions) - len(self._timed_out) - self.max_sessions
        for subject, session in self._sessions.items():
            if session.closed_at > limit and surplus <= 0:
                break
            if subject in self._timed_out:
                continue
            self._timed_out.add(subject)
            surplus -= 1
            reason = "judge_lag" if session.closed_at <= limit else "overload"
            yield self._skipped("session", session, session.digest, reason)

    def on_verdict(self, record: VerdictRecord, *, key: bytes, offset: int) -> Iterator[Effects]:
        session = self._sessions.get((key, record.digest))
        if session is None:
            return
        outcomes = [each for each in record.outcomes if each.evaluator in session.due]
        names = {each.evaluator for each in outcomes}
        subject = replace(session.subject, revision=offset)
        publish = tuple(self._signals.of_session_input(subject, outcomes, session.digest))
        changes: list[Change] = []
        if self.rules.task_evaluator in names:
            changes += self._decided_run(session, subject, outcomes)
        if due := tuple(name for name in session.due if name not in names):
            session = self._sessions[key, session.digest] = replace(session, due=due)
            changes.append(session)
        else:
            del self._sessions[key, session.digest]
            self._timed_out.discard((key, session.digest))
            changes.append(Tombstone(state=session))
        yield Effects(publish=publish, changes=tuple(changes))

    def _decided_run(
        self, session: SessionAwaited, subject: Subject, outcomes: Iterable[Outcome]
    ) -> Iterator[RunRecord]:
        evaluator = self.rules.task_evaluator
        if is_undecided(session, evaluator):
            run = task_run(session.task, subject, outcomes, evaluator=evaluator)
            if run is not None:
                yield run

    def _skipped(
        self,
        scope: str,
        state: SessionTurn | SessionAwaited,
        digest: str,
        reason: str,
    ) -> VerdictRecord:
        about = state.subject if isinstance(state, SessionAwaited) else state
        return VerdictRecord(
            scope=scope,
            service=about.service,
            session_id=about.session_id,
            subject=state.turn.trace_id if isinstance(state, SessionTurn) else about.session_id,
            digest=digest,
            outcomes=self.rules.judged.skipped(scope, reason, state.due),
        )
