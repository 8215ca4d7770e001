"""One open session: its head, its window, its running scores. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field

from msgspec.structs import replace

from collector.config.tree import SessionWindow
from collector.records.more import AskRecord
from collector.records.sessions import SessionAwaited, SessionHead, SessionTurn, TaskClaims
from collector.records.subject import Subject
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import RunawayRecord, VerdictRecord, WorkRecord
from collector.scoring.effects import Change, Effects, PlacedTrace, Publication, Tombstone
from collector.scoring.outcome_signals import (
    OutcomeSignals,
    earlier_beginning,
    named_after,
    session_outcomes,
    session_subject,
    trace_signal_id,
    trace_subject,
)
from collector.scoring.rules import RUNAWAY, Rules, not_read
from collector.scoring.session_end import (
    SessionEnd,
    awaiting,
    merge_task_claims,
    session_end,
    unscored_turn,
)
from collector.scoring.session_work import SessionMemory, ranked_work
from collector.scoring.sliding_window import SlidingWindow, is_turn, ordered_start
from collector.scoring.turn_sketches import Sketches, TurnSketches, sketches_in
from evaluators.model import Outcome, SessionClosed
from evaluators.resources import WINDOW
from evaluators.run import SessionScorer
from evaluators.trace.runaway import LEAST_MODEL_CALLS, is_found, may_be_found


@dataclass(slots=True, eq=False)
class OpenSession:
    """Takes one trace record at a time: `take`, then `finish`."""

    key: bytes
    head: SessionHead
    _: KW_ONLY
    rules: Rules
    limits: InitVar[SessionWindow]
    costs: SessionMemory
    seen: int = field(init=False)  # the newest of its offsets that was looked at
    pending: dict[str, float] = field(default_factory=dict[str, float])
    """Traces that wait for a verdict, and the log time of their records; the session closes after them."""
    sketches: TurnSketches = field(init=False)
    _judged: tuple[str, ...] = field(init=False)
    _scorer: SessionScorer = field(init=False)
    _signals: OutcomeSignals = field(init=False)
    _window: SlidingWindow = field(init=False)

    def __post_init__(self, limits: SessionWindow) -> None:
        rules = self.rules
        self.seen = self.head.offset
        self._signals = OutcomeSignals(rules=rules)
        self._scorer = rules.new_scorer()
        self._window = SlidingWindow(
            max_traces=limits.max_traces,
            max_age=limits.max_age,
            history=WINDOW if rules.sketched else 0,
            used={(), *rules.used.values()},
        )
        self.sketches = TurnSketches(self._window, rules.sketched)
        judged = rules.judged
        self._judged = tuple(each.spec.name for each in (*judged.trace, *judged.plugins))

    @property
    def cost(self) -> int:
        """Bytes of memory that it is charged, as of its newest trace record: what it takes at rest.

        It is in the head, so that a restart in the middle of a write closes the same sessions for want of memory.
        """
        return self.head.cost

    @property
    def traces(self) -> tuple[SessionTurn, ...]:
        return tuple(self._window)

    @property
    def size(self) -> int:
        return len(self._window)

    def _cost(self, claims: TaskClaims | None) -> int:
        return self.costs.charged(self.key, self.head, claims, self._window)

    @property
    def awake_cost(self) -> int:
        return self.sketches.size + self.costs.awake(
            self.key, self.head, self.head.task, self._window
        )

    def restore(self, entry: SessionTurn) -> None:
        """Take a trace back after a restart. It no longer waits for judged evaluators that are off since then."""
        due = tuple(name for name in entry.due if name in self._judged)
        head = self.head  # its names, not a copy of them for each trace
        entry = replace(entry, due=due, service=head.service, session_id=head.session_id)
        self._window.restore(entry)
        self._note(entry)

    def holds(self, record: SummarisedTrace, offset: int) -> bool:
        """Whether the record is a repeat: a trace counts once (rule 7).

        A trace stored from this very record, above the head's offset, was left by a crash between the two: it is
        scored again. What was read as a piece of another trace's turn is not a repeat once it is read as a turn.
        """
        if offset <= self.head.offset:
            return True
        turn = record.summary.turn
        entry = self._window.get(turn.trace_id)
        if entry is None or entry.offset == offset:
            return False
        became_turn = entry.turn.is_part and not turn.is_part
        return entry.turn.digest == turn.digest and not became_turn

    def outdated(self, record: SummarisedTrace) -> bool:
        entry = self._window.get(record.summary.turn.trace_id)
        return entry is not None and record.revision < entry.revision

    def take(
        self, record: SummarisedTrace, *, offset: int, now: float, is_new: bool
    ) -> PlacedTrace:
        """Place the trace; what is returned says what must be read before it is finished."""
        head = self.head
        entry = unscored_turn(
            record,
            service=head.service,
            session_id=head.session_id,
            offset=offset,
            now=now,
            more=head.more,
        )
        earlier = self._window.get(entry.turn.trace_id)
        if earlier is not None:  # a revision keeps the start that was published
            entry = replace(entry, started=earlier.started or ordered_start(earlier))
        placement = self._window.place(entry)
        claims = merge_task_claims(head.task, record.summary)
        began = earlier_beginning(head, entry)
        cost = self._cost(claims)
        self.head = replace(head, last=now, offset=offset, task=claims, cost=cost, began=began)
        self.sketches.put(entry.turn.trace_id, sketches_in(record))
        return PlacedTrace(
            key=self.key,
            trace=record,
            entry=entry,
            earlier=earlier,
            is_new=is_new,
            placement=placement,
            number=self._window.number_of(entry),
            lacking=self.sketches.lacking(entry, placement.affected),
        )

    def finish(self, placed: PlacedTrace, found: Mapping[str, Sketches]) -> Effects:
        """Score the trace, and the turns after it that are compared with others now.

        `found`: the sketches that it lacked, by trace id, of those that the log still has. The head is the last record
        of the state: a crash before it repeats the whole, after it nothing.
        """
        publish: list[Publication] = []
        changed = placed.is_new or (placed.placement.inside and is_turn(placed.entry))
        for entry in placed.placement.removed:
            if entry.due:
                publish += self._signals.without_verdict(entry, "overload")[0]
            self._forget(entry)
            changed = changed or is_turn(entry)
        for trace_id, sketches in found.items():
            self.sketches.put(trace_id, sketches)
        scored, possible = self._score(placed, self._outcomes(placed))
        publish += scored
        touched: list[str] = []
        for trace_id in placed.placement.affected:
            if (signals := self._compare_again(trace_id)) is not None:
                publish += signals
                touched.append(trace_id)
                changed = True
        self.sketches.let_go()
        work: tuple[WorkRecord | RunawayRecord, ...] = possible
        if changed and not self._window.is_piece:
            subject, outcomes = self._running()
            publish += self._signals.of_session(subject, outcomes, self._window)
            work = (*possible, *self._work(subject, outcomes, placed))
        changes = (*self._changed_traces(placed, touched), self._named_head())
        return Effects(publish=tuple(publish), work=work, changes=changes)

    def _outcomes(self, placed: PlacedTrace) -> tuple[Outcome, ...]:
        """Of the trace, in the order of the plan: what its record says, and what it is compared with."""
        read = placed.trace.outcomes or TraceOutcomes()
        known = {each.evaluator: each for each in read.outcomes}
        if placed.number is not None:
            known |= {each.evaluator: each for each in read.by_turn.get(placed.number, ())}
        known |= {each.evaluator: each for each in self.sketches.compared(placed.entry)}
        return tuple([known.get(each.spec.name) or not_read(each) for each in self.rules.trace])

    def on_verdict(self, record: VerdictRecord, *, offset: int) -> Effects | None:
        """Final outcomes of a trace in place of its stand-ins; None when it waits for none of them (rule 6).

        The head goes first: a crash before the trace is stored repeats the whole, after it nothing.
        """
        entry = self._window.get(record.subject)
        if entry is None or entry.turn.digest != record.digest:
            return None
        outcomes = [each for each in record.outcomes if each.evaluator in entry.due and each.final]
        if not outcomes:
            return None
        inputs = {name: self._window.input_digest(used) for name, used in self.rules.used.items()}
        known = {*entry.counted, *entry.signal_ids}
        publish, judged = self._signals.of_trace(entry, outcomes, known)
        self._replace(judged)
        self.head = replace(self.head, cause=offset)
        subject, outcomes = self._running()
        publish += self._signals.of_session(subject, outcomes, self._window, published=inputs)
        return Effects(publish=tuple(publish), changes=(self._named_head(), judged))

    @property
    def waits_for_ours(self) -> bool:
        """Whether one of the verdicts that it waits for is not of a third party's evaluator."""
        waiting = filter(None, map(self._window.get, self.pending))
        return any("/" not in name for entry in waiting for name in entry.due)

    def pending_trace(self, trace_id: str) -> SessionTurn | None:
        return self._window.get(trace_id) if trace_id in self.pending else None

    def close(
        self, reason: SessionClosed, *, since: int, now: float
    ) -> tuple[Effects, SessionAwaited | None]:
        """The final signals, the session's record and the end of its state; and the verdict it waits for, if any.

        Records of its traces below offset `since` are repeats from now on. The closed head goes before the tombstones:
        traces that a crash leaves behind it belong to no session (rule 5).
        """
        publish = self._give_up("overload" if reason == "memory" else "judge_lag")
        end = session_end(
            self.key, self.head, self._window, rules=self.rules, reason=reason, now=now
        )
        is_scored = not self._window.is_piece
        if is_scored:
            publish += self._signals.of_session(end.subject, end.outcomes, self._window)
            publish += self._signals.of_session_input(
                end.subject, end.unasked, self._window.input_digest(())
            )
        self.head = replace(self.head, closed=True, since=since)
        effects = Effects(
            publish=tuple(publish),
            work=self._work(end.subject, end.outcomes) if is_scored else (),
            changes=tuple(self._last_changes(end)),
            closed=(self.head.service, reason) if is_scored else None,
        )
        return effects, end.awaited

    def _score(
        self, task: PlacedTrace, outcomes: Sequence[Outcome]
    ) -> tuple[list[Publication], tuple[RunawayRecord, ...]]:
        """The signals of the trace's own outcomes; the window keeps them where it still holds the trace.

        That of `runaway` is left out where the model calls of other traces decide it.
        """
        known = task.known
        unasked, due = self.rules.judged.judgement(
            task.trace.summary, self.key, inside=task.placement.inside, more=self.head.more
        )
        counted = self._judged if known is None else tuple(n for n in self._judged if n in known)
        held = self._window.get(task.entry.turn.trace_id)
        entry = held or task.entry
        if (due, counted) != (entry.due, entry.counted):
            entry = replace(entry, due=due, counted=counted)
        publish, entry = self._signals.of_trace(entry, [*outcomes, *unasked], known)
        if held is not None:
            self._replace(entry)
        # A revision may be no turn any more though its earlier one was.
        if task.earlier is not None and not is_turn(entry):
            self._scorer.drop(entry.turn.trace_id)
        if not self.rules.counts_calls:
            return publish, ()
        return without_possible_runaway(entry, outcomes, publish)

    def _give_up(self, reason: str) -> list[Publication]:
        """Every trace that waits for a verdict ends without one."""
        publish: list[Publication] = []
        for trace_id in [*self.pending]:
            entry = self._window.get(trace_id)
            if entry is None:
                continue
            more, entry = self._signals.without_verdict(entry, reason)
            self._replace(entry)
            publish += more
        return publish

    def _compare_again(self, trace_id: str) -> list[Publication] | None:
        """The signals of outcomes that changed; None: no outcome did, the ids are the same."""
        entry = self._window.get(trace_id)
        if entry is None:
            return None
        changed = [
            each
            for each in self.sketches.compared(entry)
            if entry.signal_ids.get(each.evaluator) != trace_signal_id(entry, each)
        ]
        if not changed:
            return None
        publish, entry = self._signals.of_trace(entry, changed, entry.signal_ids)
        self._replace(entry)
        return publish

    def _running(self) -> tuple[Subject, tuple[Outcome, ...]]:
        subject = session_subject(self.head, self._window)
        return subject, session_outcomes(subject, self._window, self._scorer)

    def _work(
        self, subject: Subject, outcomes: Iterable[Outcome], placed: PlacedTrace | None = None
    ) -> tuple[WorkRecord, ...]:
        return ranked_work(self.rules, self._window, self.head.task, subject, outcomes, placed)

    def _replace(self, entry: SessionTurn) -> None:
        self._window.replace(entry)
        self._note(entry)

    def _note(self, entry: SessionTurn) -> None:
        trace_id = entry.turn.trace_id
        if is_turn(entry):
            self._scorer.put(awaiting(entry.turn, entry.due))
        if entry.due:
            self.pending[trace_id] = entry.placed_at
        else:
            self.pending.pop(trace_id, None)

    def _forget(self, entry: SessionTurn) -> None:
        self.pending.pop(entry.turn.trace_id, None)
        if is_turn(entry):
            self._scorer.drop(entry.turn.trace_id)

    def _named_head(self) -> SessionHead:
        self.head = named_after(self.head, self._window.newest)
        return self.head

    def _changed_traces(self, task: PlacedTrace, touched: Iterable[str]) -> Iterator[Change]:
        own = task.entry.turn.trace_id
        for trace_id in touched:
            entry = self._window.get(trace_id)
            if entry is not None and trace_id != own:
                yield entry
        for removed in task.placement.removed:
            yield Tombstone(state=removed)
        if (entry := self._window.get(own)) is not None:
            yield entry
            if self._is_asked_more(entry):
                head = self.head
                yield AskRecord(
                    service=head.service, session_id=head.session_id, offset=entry.offset
                )

    def _is_asked_more(self, entry: SessionTurn) -> bool:
        """Whether the judge must be told of the trace: by its sample it would not be asked."""
        judged = self.rules.judged
        if not self.head.more or judged.samples(self.key):
            return False
        return any(each.spec.name in entry.due for each in judged.trace)

    def _last_changes(self, end: SessionEnd) -> Iterator[Change]:
        yield from (each for each in (end.awaited, end.record, end.run) if each is not None)
        yield self._named_head()
        for entry in self._window:
            yield Tombstone(state=entry)


def without_possible_runaway(
    entry: SessionTurn, outcomes: Sequence[Outcome], publish: list[Publication]
) -> tuple[list[Publication], tuple[RunawayRecord, ...]]:
    """What is published of a trace here, and its outcome of `runaway` where that is decided elsewhere."""
    if entry.turn.model_calls < LEAST_MODEL_CALLS:
        return publish, ()
    own = next((each for each in outcomes if each.evaluator == RUNAWAY), None)
    if own is None or is_found(own) or not may_be_found(own, entry.turn.model_calls):
        return publish, ()
    record = RunawayRecord(
        subject=trace_subject(entry),
        model=entry.turn.model,
        model_calls=entry.turn.model_calls,
        digest=entry.turn.digest,
        outcome=own,
        is_first=any(each.is_first for each in publish if each.outcome.evaluator == RUNAWAY),
    )
    return [each for each in publish if each.outcome.evaluator != RUNAWAY], (record,)
