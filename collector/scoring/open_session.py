"""One open session: its head, its window, its running scores. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace as amended

from collector.log import SESSIONS, TRACES, New
from collector.records import (
    SessionAwaited,
    SessionHead,
    SessionRecord,
    SessionTurn,
    TraceRecord,
    VerdictRecord,
    encode,
)
from collector.scoring.awaited import awaited_state
from collector.scoring.effects import Effects, Rerun, Scored, SessionClosed, Task
from collector.scoring.emit import (
    Subject,
    outcome_signal,
    session_signal_id,
    trace_signal_id,
    trace_subject,
    turn_subject,
)
from collector.scoring.ports import Rules, SessionScorer
from collector.scoring.session_window import SessionWindow
from collector.scoring.task_run import awaits, heard, run_of
from collector.scoring.turn import bare, is_turn, unscored_turn, with_outcomes
from evaluators.model import Outcome, Session


class Bounds(Protocol):
    """Of one session's window (`windows.session`)."""

    @property
    def max_traces(self) -> int:
        """How many traces it holds."""
        ...

    @property
    def max_age(self) -> float:
        """Seconds from the newest start back to the oldest that it holds."""
        ...


class OpenSession:
    """Takes one trace record at a time: `take`, then `finish` with its outcomes."""

    __slots__ = (
        "_judged",
        "_partition",
        "_redact",
        "_rules",
        "_scorer",
        "_window",
        "head",
        "key",
        "waiting",
    )

    def __init__(
        self,
        key: bytes,
        head: SessionHead,
        *,
        rules: Rules,
        bounds: Bounds,
        partition: int,
        redact: bool,
    ) -> None:
        self.key = key
        self.head = head
        self.waiting: dict[str, float] = {}
        """Traces whose verdict has not come yet, and the log time of their records; the session closes after them."""
        self._rules = rules
        self._partition = partition
        self._redact = redact
        self._scorer: SessionScorer = rules.new_scorer()
        self._window = SessionWindow(
            max_traces=bounds.max_traces,
            max_age=bounds.max_age,
            history=rules.history if rules.history_takers else 0,
            used={(), *rules.used.values()},
        )
        self._judged = tuple(each.spec.name for each in rules.judged.trace)

    def put_back(self, entry: SessionTurn) -> None:
        """A turn read back from the log after a restart. A judge that is gone since then is not waited for."""
        due = tuple(name for name in entry.due if name in self._judged)
        entry = amended(entry, due=due) if due != entry.due else entry
        self._window.put_back(entry)
        self._keep(entry)

    def holds(self, record: TraceRecord, offset: int) -> bool:
        """Whether the record is a repeat: a trace counts once (rule 7).

        A turn from this very record, above the head's offset, is what a crash left of its state: it is done again.
        """
        if offset <= self.head.offset:
            return True
        held = self._window.get(record.trace.trace_id)
        if held is None or held.offset == offset:
            return False
        return held.turn.digest == record.trace.digest

    def outdated(self, record: TraceRecord) -> bool:
        """Whether a later revision of the trace is here already."""
        held = self._window.get(record.trace.trace_id)
        return held is not None and record.revision < held.revision

    def take(self, record: TraceRecord, *, offset: int, now: float, is_new: bool) -> Task:
        """Place the trace; says what must be scored."""
        head = self.head
        entry = unscored_turn(
            record, service=head.service, session_id=head.session_id, offset=offset, now=now
        )
        held = self._window.get(entry.turn.trace_id)
        placed = self._window.place(entry)
        task = heard(head.task, record.trace)
        self.head = amended(head, last=now, offset=offset, task=task)
        return Task(
            key=self.key,
            record=record,
            entry=entry,
            held=held,
            is_new=is_new,
            placed=placed,
            history=self._window.before(entry),
            turn=self._window.place_of(entry),
            reruns=tuple(self._reruns(placed.affected)),
        )

    def finish(self, task: Task, outcomes: Sequence[Outcome], reruns: Sequence[Scored]) -> Effects:
        """Its outcomes, and those of its neighbours, are known: what to publish and to persist.

        The head is the last record of the state: a crash before it repeats the whole, after it nothing.
        """
        signals: list[New] = []
        state: list[New] = []
        changed = task.is_new or (task.placed.inside and is_turn(task.entry))
        for left in task.placed.left:
            signals += self._given_up(left, "overload")
            changed = self._forget(left) or changed
        entry = self._score(task, outcomes, signals)
        touched = dict.fromkeys(task.placed.let_go)
        for scored in reruns:
            if self._rescore(scored, signals):
                touched[scored.record.trace.trace_id] = None
                changed = True
        if changed:
            signals += self._session_signals(None, self._session_outcomes(None))
        own = entry.turn.trace_id
        stored = (self._window.get(each) for each in touched if each != own)
        state += [self._new_turn(each) for each in stored if each is not None]
        state += [self._new_state(left.turn.trace_id, None) for left in task.placed.left]
        if (mine := self._window.get(own)) is not None:
            state.append(self._new_turn(mine))
        state.append(self._new_head())
        return Effects(signals=tuple(signals), state=tuple(state))

    def on_verdict(self, record: VerdictRecord, *, offset: int) -> Effects | None:
        """Final outcomes of a trace in place of its stand-ins; None when nothing of it is waited for (rule 6).

        The head goes first: a crash before the turn is stored repeats the whole, after it nothing.
        """
        entry = self._window.get(record.subject)
        if entry is None or entry.turn.digest != record.digest:
            return None
        outcomes = [each for each in record.outcomes if each.evaluator in entry.due and each.final]
        if not outcomes:
            return None
        signals, settled = self._verdict(entry, outcomes)
        before = self._inputs()
        self._window.settle(settled)
        self._keep(settled)
        self.head = amended(self.head, cause=offset)
        signals += self._session_signals(None, self._session_outcomes(None), said=before)
        return Effects(signals=tuple(signals), state=(self._new_head(), self._new_turn(settled)))

    def due(self, trace_id: str) -> SessionTurn | None:
        """The turn, if a verdict about it is still waited for."""
        return self._window.get(trace_id) if trace_id in self.waiting else None

    def close(
        self, reason: SessionClosed, *, since: int, now: float
    ) -> tuple[Effects, SessionAwaited | None]:
        """The final signals, the session's record, and the end of its state; and what a judge must still say.

        Records of its traces below offset `since` are repeats from now on. The closed head goes first: turns that a
        crash leaves behind it are of no session (DESIGN 4, rule 5).
        """
        offsets = tuple(entry.offset for entry in self._window)
        late = self._give_up_all("overload" if reason == "memory" else "judge_lag")
        awaited = self._awaited(reason, now)
        record = SessionRecord(
            service=self.head.service,
            session_id=self.head.session_id,
            closed=reason,
            traces=offsets,
            digest=awaited.digest if awaited is not None else "",
            due=awaited.due if awaited is not None else (),
        )
        outcomes = self._session_outcomes(reason)
        signals = (
            *late,
            *self._session_signals(reason, outcomes),
            *self._settled_session(reason),
        )
        run = self._run(reason, outcomes, awaited)
        self.head = amended(self.head, closed=True, since=since)
        turns = (self._new_state(entry.turn.trace_id, None) for entry in self._window)
        effects = Effects(
            signals=signals,
            state=(
                *(() if awaited is None else (awaited_state(self.key, awaited, self._partition),)),
                New(topic=TRACES, key=self.key, value=encode(record), partition=self._partition),
                *run,
                self._new_head(),
                *turns,
            ),
            closed=(self.head.service, reason),
        )
        return effects, awaited

    def _score(self, task: Task, outcomes: Sequence[Outcome], signals: list[New]) -> SessionTurn:
        known = _known(task)
        settled, due = self._judgement(task)
        outcomes = [*outcomes, *settled]
        ids = self._publish(task.record, outcomes, known, signals)
        placed = self._window.get(task.entry.turn.trace_id)
        counted = self._judged if known is None else tuple(n for n in self._judged if n in known)
        entry = with_outcomes(
            amended(placed or task.entry, due=due, counted=counted), outcomes, ids
        )
        if placed is not None:
            self._window.settle(entry)
            self._keep(entry)
        if task.held is not None and not is_turn(entry):
            self._scorer.drop(entry.turn.trace_id)
        return entry

    def _judgement(self, task: Task) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
        """Outcomes that no judge is needed for, and the names of those that are due."""
        if not self._judged:
            return (), ()
        judged = self._rules.judged
        settled = judged.settled(task.record.trace, self.key)
        if not settled and not task.placed.inside:
            settled = judged.skipped("trace", "overload")
        return settled, () if settled else self._judged

    def _verdict(
        self, entry: SessionTurn, outcomes: Sequence[Outcome]
    ) -> tuple[list[New], SessionTurn]:
        """The signals of final outcomes that came after their trace's own, and the turn with them."""
        subject = turn_subject(entry)
        ids = {
            each.evaluator: trace_signal_id(entry.service, entry.turn, each) for each in outcomes
        }
        known = {*entry.counted, *entry.signal_ids}
        signals = [
            self._signal(subject, each, ids[each.evaluator], first=each.evaluator not in known)
            for each in outcomes
            if each.evaluator in self._rules.emitted
        ]
        return signals, with_outcomes(entry, outcomes, ids)

    def _given_up(self, entry: SessionTurn, reason: str) -> list[New]:
        """What is waited for ends without a verdict: the trace leaves, or its session closes for want of room."""
        if not entry.due:
            return []
        return self._verdict(entry, self._rules.judged.skipped("trace", reason, entry.due))[0]

    def _give_up_all(self, reason: str) -> list[New]:
        signals: list[New] = []
        for trace_id in [*self.waiting]:
            entry = self._window.get(trace_id)
            if entry is None:
                continue
            outcomes = self._rules.judged.skipped("trace", reason, entry.due)
            more, settled = self._verdict(entry, outcomes)
            self._window.settle(settled)
            self._keep(settled)
            signals += more
        return signals

    def _awaited(self, reason: SessionClosed, now: float) -> SessionAwaited | None:
        judged = self._rules.judged
        if not judged.session or self._settled_outcomes():
            return None
        subject = self._subject(reason)
        return SessionAwaited(
            service=subject.service,
            session_id=subject.session_id,
            session_source=subject.session_source,
            agent=subject.agent,
            agent_version=subject.agent_version,
            seen=subject.seen,
            closed=reason,
            closed_at=now,
            digest=self._window.input_digest(()),
            due=tuple(each.spec.name for each in judged.session),
            task=self.head.task,
        )

    def _run(
        self, reason: SessionClosed, outcomes: Sequence[Outcome], awaited: SessionAwaited | None
    ) -> tuple[New, ...]:
        """The task run that the session was, unless a verdict must decide it first."""
        task, name = self.head.task, self._rules.task_evaluator
        if awaited is not None and awaits(awaited, name):
            return ()
        subject = self._subject(reason)
        every = (*outcomes, *self._settled_outcomes())
        run = run_of(task, subject, every, evaluator=name)
        if run is None:
            return ()
        return (New(topic=TRACES, key=self.key, value=encode(run), partition=self._partition),)

    def _settled_outcomes(self) -> tuple[Outcome, ...]:
        has_turns = bool(len(self._window.turns))
        return self._rules.judged.settled_session(self.key, has_turns=has_turns)

    def _settled_session(self, reason: SessionClosed) -> Iterator[New]:
        """The judged outcomes of the session that no judge has to be asked for."""
        subject = self._subject(reason)
        read = self._window.input_digest(())
        for each in self._settled_outcomes():
            if each.evaluator in self._rules.emitted:
                yield self._signal(
                    subject, each, session_signal_id(subject, each, read), first=True
                )

    def _signal(self, subject: Subject, outcome: Outcome, id_: str, *, first: bool) -> New:
        return outcome_signal(
            subject, outcome, id_, first=first, rules=self._rules, redact=self._redact
        )

    def _rescore(self, scored: Scored, signals: list[New]) -> bool:
        """Whether anything changed; the same id says that nothing did."""
        entry = self._window.get(scored.record.trace.trace_id)
        if entry is None or entry.turn.digest != scored.record.trace.digest:
            return False
        service = self.head.service
        ids = {
            each.evaluator: trace_signal_id(service, scored.record.trace, each)
            for each in scored.outcomes
        }
        changed = tuple(
            each
            for each in scored.outcomes
            if entry.signal_ids.get(each.evaluator) != ids[each.evaluator]
        )
        if not changed:
            return False
        settled = with_outcomes(
            entry, changed, self._publish(scored.record, changed, entry.signal_ids, signals)
        )
        self._window.settle(settled)
        self._keep(settled)
        return True

    def _publish(
        self,
        record: TraceRecord,
        outcomes: Sequence[Outcome],
        known: Mapping[str, str] | None,
        signals: list[New],
    ) -> dict[str, str]:
        """Ids by evaluator. First final outcomes are those whose evaluator is not `known`; None: all are."""
        head = self.head
        subject = trace_subject(record, service=head.service, session_id=head.session_id)
        ids: dict[str, str] = {}
        for each in outcomes:
            id_ = ids[each.evaluator] = trace_signal_id(head.service, record.trace, each)
            if each.evaluator in self._rules.emitted:
                first = each.final and known is not None and each.evaluator not in known
                signals.append(self._signal(subject, each, id_, first=first))
        return ids

    def _inputs(self) -> dict[str, str]:
        """By session evaluator, the digest of what it reads."""
        return {name: self._window.input_digest(used) for name, used in self._rules.used.items()}

    def _session_outcomes(self, closed: SessionClosed | None) -> tuple[Outcome, ...]:
        head, newest = self.head, self._window.newest
        agent = newest.agent if newest is not None else head.agent
        session = Session(
            service=head.service,
            session_id=head.session_id,
            agent=agent,
            turns=self._window.turns,
            closed=closed,
        )
        scorer = self._scorer if closed is None else self._fresh_scorer()
        return scorer.outcomes(session, closed=closed is not None)

    def _session_signals(
        self,
        closed: SessionClosed | None,
        outcomes: Sequence[Outcome],
        *,
        said: Mapping[str, str] | None = None,
    ) -> Iterator[New]:
        """What the session's evaluators say now; not those that have read just this before (`said`)."""
        subject = self._subject(closed)
        is_final = closed is not None
        for outcome in outcomes:
            if outcome.evaluator not in self._rules.emitted:
                continue
            each = amended(outcome, final=False) if outcome.final and not is_final else outcome
            read = self._window.input_digest(self._rules.used.get(each.evaluator, ()))
            if said is not None and said.get(each.evaluator) == read:
                continue  # the same id with another revision would be another text
            yield self._signal(
                subject, each, session_signal_id(subject, each, read), first=each.final
            )

    def _subject(self, closed: SessionClosed | None) -> Subject:
        head, newest = self.head, self._window.newest
        cause = max(head.offset, head.cause)
        return Subject(
            scope="session",
            service=head.service,
            session_id=head.session_id,
            session_source=newest.session_source if newest is not None else head.session_source,
            agent=newest.agent if newest is not None else head.agent,
            agent_version=newest.agent_version if newest is not None else head.agent_version,
            seen=self._window.seen or head.last,
            # The last word comes after the newest record's own.
            revision=cause + 1 if closed else cause,
            closed=closed,
        )

    def _fresh_scorer(self) -> SessionScorer:
        """The last word is computed from the turns in order, so that no way there can leave a trace in it."""
        scorer = self._rules.new_scorer()
        for turn in self._window.turns:
            scorer.put(bare(turn))
        return scorer

    def _reruns(self, affected: Sequence[str]) -> Iterator[Rerun]:
        for trace_id in affected:
            entry = self._window.get(trace_id)
            if entry is not None:
                yield Rerun(entry=entry, history=self._window.before(entry))

    def _keep(self, entry: SessionTurn) -> None:
        trace_id = entry.turn.trace_id
        if is_turn(entry):
            self._scorer.put(bare(entry.turn))
        if entry.due:
            self.waiting[trace_id] = entry.placed_at
        else:
            self.waiting.pop(trace_id, None)

    def _forget(self, entry: SessionTurn) -> bool:
        """Whether a turn left."""
        self.waiting.pop(entry.turn.trace_id, None)
        if is_turn(entry):
            self._scorer.drop(entry.turn.trace_id)
        return is_turn(entry)

    def _new_head(self) -> New:
        newest = self._window.newest
        if newest is not None:
            self.head = amended(
                self.head,
                agent=newest.agent,
                agent_version=newest.agent_version,
                session_source=newest.session_source,
            )
        return self._new_state(None, encode(self.head))

    def _new_turn(self, entry: SessionTurn) -> New:
        return self._new_state(entry.turn.trace_id, encode(entry))

    def _new_state(self, trace_id: str | None, value: bytes | None) -> New:
        key = self.key if trace_id is None else turn_key(self.key, trace_id)
        return New(topic=SESSIONS, key=key, value=value, partition=self._partition)


def _known(task: Task) -> Mapping[str, str] | None:
    """Evaluators of the trace that had a final outcome before; None: nobody knows, it is a later revision."""
    if task.held is not None:
        return {**dict.fromkeys(task.held.counted, ""), **task.held.signal_ids}
    return {} if task.record.revision == 0 else None


def turn_key(session: bytes, trace_id: str) -> bytes:
    """The key of one trace's state in topic `sessions`."""
    return session + b"\0" + trace_id.encode()
