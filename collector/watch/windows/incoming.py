"""Signals of one subject (session or trace) in one record, as the metrics see them: what they have in common."""

from functools import cached_property

from collector.base.telemetry import OTHER, short
from collector.records.sessions import session_key
from collector.records.signal import unix_seconds
from collector.records.signal_batch import SubjectHeader
from collector.watch.settling import bounded, digest_of
from collector.watch.windows.target import Labels


class Incoming:
    def __init__(self, subject: SubjectHeader, time: float) -> None:
        """`time` is the record's log time. Raises Undecodable: the subject's time cannot be read."""
        self.subject = subject
        self.time = time
        self.arrived = unix_seconds(subject.time)  # log time at which its newest span arrived
        self.is_trace = subject.scope == "trace"
        self.session = bounded(subject.session_id)
        """The session's name in the windows of a service's own agents."""
        self.version = short(subject.agent_version or "")

    @cached_property
    def fed(self) -> tuple[str, int]:
        subject = self.subject
        name = bounded((subject.trace_id if self.is_trace else None) or subject.session_id)
        return name, digest_of(name)

    def session_in(self, labels: Labels) -> str:
        """The session's name in the windows of these labels, which several services share when they are `_other`."""
        if OTHER not in (labels.service, labels.agent):
            return self.session
        return self._shared

    @cached_property
    def _shared(self) -> str:
        return bounded(session_key(self.subject.service, self.subject.session_id).decode())
