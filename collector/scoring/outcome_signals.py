"""Outcomes become signals. Pure: the same outcome of the same subject is the same signal."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from collector.records.sessions import SessionHead, SessionTurn, session_key
from collector.records.signal import ALWAYS, signal_id, trace_input_digest
from collector.records.subject import Subject, shared_fields
from collector.scoring.effects import Publication
from collector.scoring.rules import Rules
from collector.scoring.sliding_window import SlidingWindow, ordered_start
from evaluators.model import Outcome, Session, SessionClosed
from evaluators.run import SessionScorer

_T = TypeVar("_T")


def trace_subject(entry: SessionTurn) -> Subject:
    return Subject(
        scope="trace",
        trace_id=entry.turn.trace_id,
        start=ordered_start(entry),
        **shared_fields(entry, Subject),
    )


def session_subject(
    head: SessionHead, window: SlidingWindow, closed: SessionClosed | None = None
) -> Subject:
    """The session as its window is; its newest trace names the agent."""
    cause = max(head.offset, head.cause)
    fields = shared_fields(named_after(head, window.newest), Subject)
    first = head.began or next(map(_began, window), None)
    newest = window.newest
    if first is not None and newest is not None:
        fields["started"], fields["first_trace"] = first
        fields["newest_trace"] = newest.turn.trace_id
    fields["closed"] = closed  # the head's own field of this name is a truth value
    return Subject(
        scope="session",
        seen=window.seen or head.last,
        # The final signals supersede those that its newest record caused.
        revision=cause + 1 if closed else cause,
        **fields,
    )


def earlier_beginning(head: SessionHead, entry: SessionTurn) -> tuple[int, str]:
    """The beginning of a session with one more trace: whichever started first, in whatever order they arrive."""
    began = _began(entry)
    return began if head.began is None else min(head.began, began)


def _began(entry: SessionTurn) -> tuple[int, str]:
    return ordered_start(entry), entry.turn.trace_id


def named_after(head: SessionHead, newest: SessionTurn | None) -> SessionHead:
    """The head with the agent of the window's newest trace; unchanged when the window is empty."""
    if newest is None:
        return head
    agent, version, source = newest.agent, newest.agent_version, newest.session_source
    if (agent, version, source) == (head.agent, head.agent_version, head.session_source):
        return head
    return replace(head, agent=agent, agent_version=version, session_source=source)


def session_outcomes(
    subject: Subject,
    window: SlidingWindow,
    scorer: SessionScorer,
    *,
    closed: SessionClosed | None = None,
) -> tuple[Outcome, ...]:
    """The outcomes of the session's evaluators; the scorer holds the window's turns."""
    session = Session(
        service=subject.service,
        session_id=subject.session_id,
        agent=subject.agent,
        turns=window.turns,
        closed=closed,
    )
    return scorer.outcomes(session, closed=closed is not None)


def trace_signal_id(entry: SessionTurn, outcome: Outcome) -> str:
    turn = entry.turn
    return signal_id(
        scope="trace",
        service=entry.service,
        subject=turn.trace_id,
        outcome=outcome,
        input_digest=_input_digest(turn.digest, outcome.compared, outcome.expectation),
    )


_input_digest = lru_cache(maxsize=64)(trace_input_digest)
"""The outcomes of a trace that compare it with nothing have one input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeSignals:
    rules: Rules

    def of_trace(
        self, entry: SessionTurn, outcomes: Sequence[Outcome], known: Collection[str] | None
    ) -> tuple[list[Publication], SessionTurn]:
        """The signals of a trace's outcomes, and the trace with these outcomes.

        `known` are the evaluators that had a final outcome of the trace before. None: this is unknown, because the
        record is a revision of a trace that the window does not hold; then no outcome counts as the first.
        A piece of another trace's turn has none.
        """
        if entry.turn.is_part:
            return [], entry
        subject = trace_subject(entry)
        publish: list[Publication] = []
        ids: dict[str, str] = {}
        for each in outcomes:
            id_ = ids[each.evaluator] = trace_signal_id(entry, each)
            if each.evaluator in self.rules.emitted:
                first = each.final and known is not None and each.evaluator not in known
                publish.append(self._publication(subject, each, id_, is_first=first))
        return publish, with_outcomes(entry, outcomes, ids, assumed=self.rules.assumed)

    def without_verdict(
        self, entry: SessionTurn, reason: str
    ) -> tuple[list[Publication], SessionTurn]:
        outcomes = self.rules.judged.skipped("trace", reason, entry.due)
        return self.of_trace(entry, outcomes, {*entry.counted, *entry.signal_ids})

    def of_session(
        self,
        subject: Subject,
        outcomes: Iterable[Outcome],
        window: SlidingWindow,
        *,
        published: Mapping[str, str] | None = None,
    ) -> Iterator[Publication]:
        """The signals of the session's outcomes, final ones only once it is closed.

        `published` are the input digests, by evaluator, of the signals just before these.
        """
        is_closed = subject.closed is not None
        for outcome in outcomes:
            keeps = is_closed or not outcome.final
            each = outcome if keeps else replace(outcome, final=False)
            digest = window.input_digest(self.rules.used.get(each.evaluator, ()))
            # Same inputs, same id: publishing it again with a new revision would break byte-identical repeats.
            if published is not None and published.get(each.evaluator) == digest:
                continue
            yield from self.of_session_input(subject, (each,), digest)

    def of_session_input(
        self, subject: Subject, outcomes: Iterable[Outcome], digest: str
    ) -> Iterator[Publication]:
        for each in outcomes:
            if each.evaluator in self.rules.emitted:
                id_ = signal_id(
                    scope="session",
                    service=subject.service,
                    subject=subject.session_id,
                    outcome=each,
                    input_digest=digest,
                )
                yield self._publication(subject, each, id_, is_first=each.final)

    def _publication(
        self, subject: Subject, outcome: Outcome, id_: str, *, is_first: bool
    ) -> Publication:
        # Only judges sample; a session's score that reads theirs follows. A stand-in has another method.
        judged = outcome.method == "llm_judge" or (
            (outcome.evaluator, outcome.method) in self.rules.judged_methods
        )
        sampling = ALWAYS
        if judged or outcome.evaluator in self.rules.reads_judged:
            key = session_key(subject.service, subject.session_id)
            sampling = self.rules.judged.sampling(key, more=subject.more)
        return Publication(
            subject=subject, outcome=outcome, id=id_, is_first=is_first, sampling=sampling
        )


def with_outcomes(
    entry: SessionTurn,
    outcomes: Sequence[Outcome],
    signal_ids: Mapping[str, str],
    *,
    assumed: Collection[str],
) -> SessionTurn:
    """The trace with these outcomes in place of earlier ones of the same evaluators.

    `signal_ids` are those of the outcomes; `assumed` are the evaluators whose assumed score counts. Outcomes that are
    not final stay beside the scores, without texts, until a verdict replaces them.
    """
    names = {each.evaluator for each in outcomes}
    turn = entry.turn
    scores, risks = _without(names, turn.scores), _without(names, turn.risks)
    unscored, why = set(turn.unscored) - names, _without(names, turn.unscored_why)
    assumed_now = set(turn.assumed) - names
    pending = {each.evaluator: each for each in entry.outcomes if each.evaluator not in names}
    ids = _without(names, entry.signal_ids)
    final: set[str] = set()
    for each in outcomes:
        if not each.final:
            pending[each.evaluator] = replace(each, explanation=None, metadata={}, evidence=())
            continue
        final.add(each.evaluator)
        if each.evaluator in signal_ids:
            ids[each.evaluator] = signal_ids[each.evaluator]
        if each.state in {"failed", "skipped"} or each.reason == "no_content":
            unscored.add(each.evaluator)
            why[each.evaluator] = each.reason or (each.error.type if each.error else each.state)
        elif (value := _counted(each, assumed)) is not None:
            scores[each.evaluator] = value
            if each.risk is not None:
                risks[each.evaluator] = each.risk
            if each.state == "not_applicable":
                assumed_now.add(each.evaluator)
    return replace(
        entry,
        turn=replace(
            turn,
            scores=_in_order(scores),
            risks=_in_order(risks),
            unscored=tuple(sorted(unscored)),
            unscored_why=_in_order(why),
            assumed=tuple(sorted(assumed_now)),
        ),
        outcomes=tuple([pending[name] for name in sorted(pending) if name not in final]),
        signal_ids=_in_order(ids),
        due=tuple([name for name in entry.due if name not in final]),
    )


def _without(names: Collection[str], of: Mapping[str, _T]) -> dict[str, _T]:
    return {name: value for name, value in of.items() if name not in names} if of else {}


def _in_order(of: dict[str, _T]) -> dict[str, _T]:
    return dict(sorted(of.items())) if len(of) > 1 else of


def _counted(outcome: Outcome, assumed: Collection[str]) -> float | None:
    if outcome.state == "scored":
        return outcome.score
    if outcome.measured is not None:
        return outcome.measured
    return outcome.assumed if outcome.evaluator in assumed else None
