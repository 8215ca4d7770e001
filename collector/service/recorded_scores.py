"""Scores of others within recordings, as signals beside those of the session that they are about."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from collector.base.errors import Undecodable
from collector.config.plan import registry_from
from collector.config.tree import Config
from collector.log.port import Record
from collector.receiver.feedback.found import said_in
from collector.records.external import EvaluationRules
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.sessions import split_session_key
from collector.records.signal import encode_signal, unix_seconds
from collector.records.subject import Subject, shared_fields
from collector.records.trace_views import ListedTrace, decode_listed_trace, trace_subject
from collector.records.traces import SessionRecord

MOST = 100_000
"""Scores of one call: they wait in memory for their session."""


class RecordedScores:
    """Takes requests in while recordings are read, then gives the signals of each session that closed."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], dict[str, Feedback]] = {}
        """By trace ("", id) or session (service, id), then by id; the newest of each."""
        self._count = 0
        self._rules = FeedbackRules()
        self._scores = EvaluationRules()

    def begin(self, config: Config) -> None:
        self._rules = FeedbackRules.of(config)
        names = frozenset(each.name for each in registry_from(config, strict=False))
        self._scores = EvaluationRules.of(config, names | set(config.judges))

    def take(self, request: bytes, items: str) -> None:
        """What an export request says; what cannot be read is left out, as what exceeds `MOST` is."""
        for item in said_in(request, items):
            if isinstance(item, Undecodable) or item.kind == "human" or self._count >= MOST:
                continue
            try:
                said = self._rules.feedback(item, now=0.0)
            except Undecodable:
                continue
            if self._rules.unwanted(item) is None:
                about = said.service or "" if said.session_id else ""
                of_subject = self._said.setdefault((about, said.subject[1]), {})
                known = of_subject.get(said.id)
                self._count += known is None
                if known is None or known.time <= said.time:
                    of_subject[said.id] = said

    def signals(
        self, key: bytes, traces: Sequence[Record], record: SessionRecord | None
    ) -> Iterator[bytes]:
        """JSON of the signals about a session and its traces: of each evaluator the newest."""
        if not self._said:
            return
        headers = [found for each in traces if (found := _listed(each)) is not None]
        newest: dict[tuple[str, str], tuple[Feedback, Subject]] = {}
        for each in headers:
            self._note(
                newest,
                ("", each.trace.trace_id),
                trace_subject(each.trace, seen=each.seen, revision=0),
            )
        if headers:
            self._note(newest, split_session_key(key), _session(headers, record))
        for said, subject in newest.values():
            revision = max(0, round(unix_seconds(said.time) * 1e6))
            about = msgspec.structs.replace(subject, revision=revision)
            yield encode_signal(self._scores.signal(said, about))

    def _note(
        self,
        newest: dict[tuple[str, str], tuple[Feedback, Subject]],
        about: tuple[str, str],
        subject: Subject,
    ) -> None:
        for said in sorted(self._said.get(about, {}).values(), key=lambda each: each.time):
            newest[about[1], self._scores.evaluator(said.name)] = said, subject


def _listed(record: Record) -> ListedTrace | None:
    found = decode_listed_trace(record.value)
    return found if isinstance(found, ListedTrace) else None


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
