"""One open session: its head, its window, its running scores. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace as amended

from collector.log.port import New
from collector.records.sessions import SessionAwaited, SessionHead, SessionTurn
from collector.records.traces import TraceRecord, VerdictRecord
from collector.scoring.effects import Effects, Rerun, Scored, SessionClosed, Task
from collector.scoring.emit import trace_signal_id
from collector.scoring.ports import Rules, SessionScorer
from collector.scoring.session_end import SessionEnd, session_end
from collector.scoring.session_signals import SessionSignals, session_outcomes, session_subject
from collector.scoring.session_state import SessionState, named_after
from collector.scoring.session_window import SessionWindow
from collector.scoring.task_run import heard
from collector.scoring.turn import bare, is_turn, unscored_turn, with_outcomes
from evaluators.model import Outcome


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
        "_rules",
        "_scorer",
        "_signals",
        "_state",
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
        self._signals = SessionSignals(rules=rules, redact=redact)
        self._state = SessionState(key=key, partition=partition)
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
        changed = task.is_new or (task.placed.inside and is_turn(task.entry))
        for left in task.placed.left:
            if left.due:
                signals += self._signals.of_no_verdict(left, "overload")[0]
            changed = self._forget(left) or changed
        signals += self._score(task, outcomes)
        touched = dict.fromkeys(task.placed.let_go)
        for scored in reruns:
            if (said := self._rescore(scored)) is not None:
                signals += said
                touched[scored.record.trace.trace_id] = None
                changed = True
        if changed:
            signals += self._running_signals()
        state = (*self._new_turns(task, touched), self._new_head())
        return Effects(signals=tuple(signals), state=state)

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
        signals, settled = self._signals.of_verdict(entry, outcomes)
        before = self._signals.inputs(self._window)
        self._settle(settled)
        self.head = amended(self.head, cause=offset)
        signals += self._running_signals(said=before)
        return Effects(signals=tuple(signals), state=(self._new_head(), self._state.turn(settled)))

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
        signals = self._give_up_all("overload" if reason == "memory" else "judge_lag")
        end = session_end(
            self.key, self.head, self._window, rules=self._rules, reason=reason, now=now
        )
        signals += self._signals.of_session(end.subject, end.outcomes, self._window)
        signals += self._signals.of_unasked(end.subject, end.unasked, self._window)
        self.head = amended(self.head, closed=True, since=since)
        effects = Effects(
            signals=tuple(signals),
            state=tuple(self._last_state(end)),
            closed=(self.head.service, reason),
        )
        return effects, end.awaited

    def _score(self, task: Task, outcomes: Sequence[Outcome]) -> list[New]:
        """The signals of the trace's own outcomes; its turn is settled with them where it is still held."""
        known = _known(task)
        settled, due = self._judgement(task)
        outcomes = [*outcomes, *settled]
        signals, ids = self._signals.of_trace(task.record, self.head, outcomes, known)
        trace_id = task.entry.turn.trace_id
        placed = self._window.get(trace_id)
        counted = self._judged if known is None else tuple(n for n in self._judged if n in known)
        entry = with_outcomes(
            amended(placed or task.entry, due=due, counted=counted), outcomes, ids
        )
        if placed is not None:
            self._settle(entry)
        if task.held is not None and not is_turn(entry):
            self._scorer.drop(trace_id)
        return signals

    def _judgement(self, task: Task) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
        """Outcomes that no judge is needed for, and the names of those that are due."""
        if not self._judged:
            return (), ()
        judged = self._rules.judged
        settled = judged.settled(task.record.trace, self.key)
        if not settled and not task.placed.inside:
            settled = judged.skipped("trace", "overload")
        return settled, () if settled else self._judged

    def _give_up_all(self, reason: str) -> list[New]:
        signals: list[New] = []
        for trace_id in [*self.waiting]:
            entry = self._window.get(trace_id)
            if entry is None:
                continue
            more, settled = self._signals.of_no_verdict(entry, reason)
            self._settle(settled)
            signals += more
        return signals

    def _rescore(self, scored: Scored) -> list[New] | None:
        """The signals of what changed; None: nothing did, the ids are the same."""
        trace = scored.record.trace
        entry = self._window.get(trace.trace_id)
        if entry is None or entry.turn.digest != trace.digest:
            return None
        changed = tuple(
            each
            for each in scored.outcomes
            if entry.signal_ids.get(each.evaluator)
            != trace_signal_id(self.head.service, trace, each)
        )
        if not changed:
            return None
        signals, ids = self._signals.of_trace(scored.record, self.head, changed, entry.signal_ids)
        self._settle(with_outcomes(entry, changed, ids))
        return signals

    def _running_signals(self, *, said: Mapping[str, str] | None = None) -> Iterator[New]:
        """What the session's evaluators say while it is open."""
        subject = session_subject(self.head, self._window)
        outcomes = session_outcomes(subject, self._window, self._scorer)
        return self._signals.of_session(subject, outcomes, self._window, said=said)

    def _reruns(self, affected: Sequence[str]) -> Iterator[Rerun]:
        for trace_id in affected:
            entry = self._window.get(trace_id)
            if entry is not None:
                yield Rerun(entry=entry, history=self._window.before(entry))

    def _settle(self, entry: SessionTurn) -> None:
        self._window.settle(entry)
        self._keep(entry)

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
        self.head = named_after(self.head, self._window.newest)
        return self._state.head(self.head)

    def _new_turns(self, task: Task, touched: Iterable[str]) -> Iterator[New]:
        """Neighbours that changed, tombstones of those that left, and the trace's own turn last."""
        own = task.entry.turn.trace_id
        for trace_id in touched:
            entry = self._window.get(trace_id)
            if entry is not None and trace_id != own:
                yield self._state.turn(entry)
        for left in task.placed.left:
            yield self._state.no_turn(left)
        if (mine := self._window.get(own)) is not None:
            yield self._state.turn(mine)

    def _last_state(self, end: SessionEnd) -> Iterator[New]:
        if end.awaited is not None:
            yield self._state.awaited(end.awaited)
        yield self._state.report(end.record)
        if end.run is not None:
            yield self._state.report(end.run)
        yield self._new_head()
        for entry in self._window:
            yield self._state.no_turn(entry)


def _known(task: Task) -> Mapping[str, str] | None:
    """Evaluators of the trace that had a final outcome before; None: nobody knows, it is a later revision."""
    if task.held is not None:
        return {**dict.fromkeys(task.held.counted, ""), **task.held.signal_ids}
    return {} if task.record.revision == 0 else None
