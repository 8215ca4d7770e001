"""What is known of one label set (service, agent, evaluator, scope): windows, detector, staleness. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from collector.config.tree import AgentWindow
from collector.errors import Undecodable
from collector.log.port import Position
from collector.signals.prometheus.recent_ids import Seen
from collector.signals.prometheus.window import Entry, Stats, Window
from evaluators.formulas.drift import Detector

MAX_VERSIONS = 8
"""Versions of an agent on the headline gauges: the newest so many."""

MAX_FED = 256
"""Signals that a detector remembers: repeats come soon after a crash."""

HEADLINES = frozenset({"agent_reliability", "agent_consistency"})


class Labels(NamedTuple):
    """The label set T of specs/alerting.md."""

    service: str
    agent: str
    evaluator: str
    scope: str

    @property
    def key(self) -> bytes:
        """Of its record in topic `windows`."""
        return "\0".join(self).encode()


class TargetRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A target as topic `windows` holds it. Fields are only ever added, each with a default."""

    labels: tuple[str, str, str, str]
    entries: tuple[Entry, ...]
    versions: dict[str, tuple[Entry, ...]] = {}
    detector: Detector
    last_score: float = 0.0
    reach: dict[int, int] = {}
    fed: tuple[str, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TargetRecord)


class Target:
    """One label set's state. `reach` says how far it has read each partition: nothing below is taken in again."""

    def __init__(self, labels: Labels, limits: AgentWindow) -> None:
        self.labels = labels
        self.last_score = 0.0
        """Log time of the newest score; 0 before the first."""
        self._limits = limits
        self._window = self._empty()
        self._versions: dict[str, Window] = {}
        self._detector = Detector()
        self._reach: dict[int, int] = {}
        self._fed = Seen(MAX_FED)

    def has_read(self, position: Position) -> bool:
        """Whether this record was taken in before (by a former life of this process, perhaps)."""
        return position.offset < self._reach.get(position.partition, 0)

    def mark_read(self, position: Position) -> None:
        """Remember that the record was taken in."""
        self._reach[position.partition] = position.offset + 1

    def offer(self, entry: Entry, version: str, time: float) -> None:
        """Take in a session's score, written at log time `time`."""
        self.last_score = max(self.last_score, time)
        self._window.offer(entry)
        if self.labels.evaluator not in HEADLINES:
            return
        self._versions.setdefault(version, self._empty()).offer(entry)
        if len(self._versions) > MAX_VERSIONS:
            del self._versions[min(self._versions, key=lambda v: (self._versions[v].newest, v))]

    def feed(self, id_: str, score: float, objective: float) -> None:
        """One more final score for the detector, unless it had this signal lately."""
        if self._fed.add(id_):
            self._detector.feed(score, objective)

    def settle(self, now: float, objective: float) -> None:
        """End an alarm whose reason is gone. Called with records only, so that a replay comes to the same."""
        if self._detector.alarmed:
            stats = self._window.stats(now)
            self._detector.settle(stats and stats.bounds.mean, objective)

    def expire(self, now: float) -> bool:
        """Forget what is too old; whether anything was."""
        gone = [window.expire(now) for window in (self._window, *self._versions.values())]
        self._versions = {v: each for v, each in self._versions.items() if each.entries}
        return any(gone)

    def stats(self, now: float) -> Stats | None:
        """Of the window, all versions together."""
        return self._window.stats(now)

    def versions(self, now: float) -> dict[str, float]:
        """The mean of each version of the agent that has one."""
        found = {version: each.stats(now) for version, each in self._versions.items()}
        return {version: stats.bounds.mean for version, stats in found.items() if stats}

    def is_drifting(self, mean: float, objective: float) -> bool:
        """Whether the detector stands on alarm and the mean is not back above the objective."""
        return self._detector.alarmed and mean <= objective

    def encode(self) -> bytes:
        """Its record."""
        return _encoder.encode(
            TargetRecord(
                labels=self.labels,
                entries=self._window.entries,
                versions={version: each.entries for version, each in self._versions.items()},
                detector=self._detector,
                last_score=self.last_score,
                reach=self._reach,
                fed=self._fed.ids,
            )
        )

    @classmethod
    def decode(cls, value: bytes, limits: AgentWindow) -> Target:
        """The target of a record, cut to today's limits.

        Raises:
            Undecodable: not a record.
        """
        try:
            record = _decoder.decode(value)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise Undecodable(str(error)) from error
        target = cls(Labels(*record.labels), limits)
        target.last_score = record.last_score
        target._window = target._empty(record.entries)
        target._versions = {v: target._empty(each) for v, each in record.versions.items()}
        target._detector = record.detector
        target._reach = dict(record.reach)
        for each in record.fed:
            target._fed.add(each)
        return target

    def _empty(self, entries: tuple[Entry, ...] = ()) -> Window:
        return Window(sessions=self._limits.sessions, max_age=self._limits.max_age, entries=entries)
