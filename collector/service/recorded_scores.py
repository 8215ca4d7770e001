"""Scores of others within recordings, as signals beside those of the session that they are about."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from collector.base.errors import Undecodable
from collector.config.plan import registry_from
from collector.config.tree import Config
from collector.log.port import Record
from collector.receiver.feedback.found import said_in
from collector.records.external import EvaluationRules
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.sent_feedback import SentFeedback
from collector.records.sessions import split_session_key
from collector.records.signal import encode_signal, unix_seconds
from collector.records.subject import Subject, shared_fields
from collector.records.trace_views import ListedTrace, decode_listed_trace, trace_subject
from collector.records.traces import SessionRecord

MOST = 100_000
"""Scores of one call: they wait in memory for their session."""


def scores_in(request: bytes, items: str) -> Iterator[SentFeedback]:
    """The scores of an export request; what cannot be read is left out."""
    for each in said_in(request, items):
        if isinstance(each, SentFeedback) and each.kind != "human":
            yield each


class RecordedScores:
    """Scores by what they are about; of one id the newest."""

    def __init__(self, config: Config, given: Iterable[SentFeedback]) -> None:
        names = frozenset(each.name for each in registry_from(config, strict=False))
        self._rules = EvaluationRules.of(config, names)
        self._said: dict[tuple[str, str], dict[str, Feedback]] = {}
        """By trace ("", id) or session (service, id), then by id."""
        rules = FeedbackRules.of(config)
        for item in given:
            try:
                said = rules.feedback(item, now=0.0)
            except Undecodable:
                continue
            if rules.unwanted(item) is None:
                service = said.service or "" if said.session_id else ""
                of_subject = self._said.setdefault((service, said.subject[1]), {})
                known = of_subject.get(said.id)
                if known is None or known.time <= said.time:
                    of_subject[said.id] = said

    def signals(
        self, key: bytes, traces: Sequence[Record], record: SessionRecord | None
    ) -> Iterator[bytes]:
        """JSON of the signals about a session and its traces: of each evaluator the newest."""
        if not self._said:
            return
        read = (decode_listed_trace(each.value) for each in traces)
        listed = [each for each in read if isinstance(each, ListedTrace)]
        subjects = {
            ("", each.trace.trace_id): trace_subject(each.trace, seen=each.seen, revision=0)
            for each in listed
        }
        if listed:
            subjects[split_session_key(key)] = _session(listed, record)
        for about, subject in subjects.items():
            said = sorted(self._said.get(about, {}).values(), key=lambda each: each.time)
            for each in {self._rules.evaluator(each.name): each for each in said}.values():
                revision = max(0, round(unix_seconds(each.time) * 1e6))
                dated = msgspec.structs.replace(subject, revision=revision)
                yield encode_signal(self._rules.signal(each, dated))


def _session(traces: Sequence[ListedTrace], record: SessionRecord | None) -> Subject:
    first, newest = traces[0].trace, traces[-1].trace
    of_session: dict[str, Any] = {
        "trace_id": None,
        "seen": max(each.seen for each in traces),
        "closed": record and record.closed,
        "started": first.start_time_unix_nano,
    }
    return Subject(
        scope="session",
        revision=0,
        first_trace=first.trace_id,
        newest_trace=newest.trace_id,
        **shared_fields(newest, Subject) | of_session,
    )
