"""What one open session says: the signals of its traces and its own. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace as amended

from collector.log.port import New
from collector.records.sessions import SessionHead, SessionTurn
from collector.records.traces import TraceRecord
from collector.scoring.effects import SessionClosed
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
from collector.scoring.turn import with_outcomes
from evaluators.model import Outcome, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSignals:
    """Publishes the outcomes of emitted evaluators; the ids of all of them come back, published or not."""

    rules: Rules
    redact: bool

    def of_trace(
        self,
        record: TraceRecord,
        head: SessionHead,
        outcomes: Sequence[Outcome],
        known: Mapping[str, str] | None,
    ) -> tuple[list[New], dict[str, str]]:
        """Signals, and ids by evaluator. First final ones are those not `known`; None: there is no first."""
        subject = trace_subject(record, service=head.service, session_id=head.session_id)
        signals: list[New] = []
        ids: dict[str, str] = {}
        for each in outcomes:
            id_ = ids[each.evaluator] = trace_signal_id(head.service, record.trace, each)
            if each.evaluator in self.rules.emitted:
                first = each.final and known is not None and each.evaluator not in known
                signals.append(self._signal(subject, each, id_, first=first))
        return signals, ids

    def of_verdict(
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
            if each.evaluator in self.rules.emitted
        ]
        return signals, with_outcomes(entry, outcomes, ids)

    def of_no_verdict(self, entry: SessionTurn, reason: str) -> tuple[list[New], SessionTurn]:
        """What the turn waits for ends without a verdict: the signals of that, and the turn with them."""
        return self.of_verdict(entry, self.rules.judged.skipped("trace", reason, entry.due))

    def of_session(
        self,
        subject: Subject,
        outcomes: Sequence[Outcome],
        window: SessionWindow,
        *,
        said: Mapping[str, str] | None = None,
    ) -> Iterator[New]:
        """What the session's evaluators say now; not those that have read just this before (`said`)."""
        is_final = subject.closed is not None
        for outcome in outcomes:
            if outcome.evaluator not in self.rules.emitted:
                continue
            each = amended(outcome, final=False) if outcome.final and not is_final else outcome
            read = window.input_digest(self.rules.used.get(each.evaluator, ()))
            if said is not None and said.get(each.evaluator) == read:
                continue  # the same id with another revision would be another text
            id_ = session_signal_id(subject, each, read)
            yield self._signal(subject, each, id_, first=each.final)

    def of_unasked(
        self, subject: Subject, outcomes: Sequence[Outcome], window: SessionWindow
    ) -> Iterator[New]:
        """The judged outcomes of the session that no judge has to be asked for."""
        read = window.input_digest(())
        for each in outcomes:
            if each.evaluator in self.rules.emitted:
                id_ = session_signal_id(subject, each, read)
                yield self._signal(subject, each, id_, first=True)

    def inputs(self, window: SessionWindow) -> dict[str, str]:
        """By session evaluator, the digest of what it reads."""
        return {name: window.input_digest(used) for name, used in self.rules.used.items()}

    def _signal(self, subject: Subject, outcome: Outcome, id_: str, *, first: bool) -> New:
        return outcome_signal(
            subject, outcome, id_, first=first, rules=self.rules, redact=self.redact
        )


def session_subject(
    head: SessionHead, window: SessionWindow, closed: SessionClosed | None = None
) -> Subject:
    """The session as its window stands; its newest trace names the agent."""
    newest = window.newest
    cause = max(head.offset, head.cause)
    return Subject(
        scope="session",
        service=head.service,
        session_id=head.session_id,
        session_source=newest.session_source if newest is not None else head.session_source,
        agent=newest.agent if newest is not None else head.agent,
        agent_version=newest.agent_version if newest is not None else head.agent_version,
        seen=window.seen or head.last,
        # The last word comes after the newest record's own.
        revision=cause + 1 if closed else cause,
        closed=closed,
    )


def session_outcomes(
    subject: Subject, window: SessionWindow, scorer: SessionScorer
) -> tuple[Outcome, ...]:
    """What the session's evaluators say of the turns that the scorer was given."""
    session = Session(
        service=subject.service,
        session_id=subject.session_id,
        agent=subject.agent,
        turns=window.turns,
        closed=subject.closed,
    )
    return scorer.outcomes(session, closed=subject.closed is not None)
