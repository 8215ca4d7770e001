"""The state of one label set (service, agent, evaluator, scope): windows, detector, staleness. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from collector.config.tree import AgentWindow
from collector.records.comparison import before, version_of
from collector.records.windows import VersionLooksRecord, WindowEntry, WindowRecord
from collector.watch.windows.versions import MAX_VERSIONS
from collector.watch.windows.window import Window
from evaluators.formulas.objective_missed import Detector
from evaluators.formulas.release_verdict import looks_of

MAX_FED = 256  # signals that a detector remembers: repeats come soon after a crash


ServiceKey = tuple[str, str, str]
"""(service, evaluator, scope): a session counts for one agent among those of its service."""


class Labels(NamedTuple):
    """The labels of the families about scores."""

    service: str
    agent: str
    evaluator: str
    scope: str


class Target:
    """The state of one label set. It remembers how far it has read each partition: no signal is taken in twice."""

    def __init__(self, labels: Labels, limits: AgentWindow) -> None:
        self.labels = labels
        self.last_score = 0.0  # log time of the newest score; 0 before the first
        self._limits = limits
        self.window = self._empty()  # of all versions together
        self._versions: dict[str, Window] = {}
        self.looks: dict[str, VersionLooksRecord] = {}  # by version, the looks that were taken
        self._detector = Detector()
        self.next_offsets: dict[int, int] = {}
        """By partition, the offset below which every signal was taken in, perhaps before a restart."""
        self._fed = RecentIds(MAX_FED)

    def offer(self, entry: WindowEntry, version: str, *, is_compared: bool) -> None:
        """`is_compared`: the windows of versions are kept, too."""
        self.window.offer(entry)
        if not is_compared:
            return
        versions = self._versions
        if len(versions) > 1 or version not in versions:
            if _hand_over((w for v, w in versions.items() if v != version), entry) is None:
                entry = replace(entry, gone=True)
            versions.setdefault(version, self._empty())
        versions[version].offer(entry)
        if len(self._versions) > MAX_VERSIONS:
            del self._versions[min(self._versions, key=lambda v: (self._versions[v].newest, v))]

    def hand_over(self, entry: WindowEntry) -> bool | None:
        """The session's latest score is now another agent's: its scores below this one count here no longer.

        Returns None when the target holds a later one, which goes on to count, else whether there was anything.
        """
        return _hand_over((self.window, *self._versions.values()), entry)

    def feed(self, id_: str, score: float, objective: float) -> None:
        """One more final score for the detector, unless it had this signal lately."""
        if self._fed.add(id_):
            self._detector.feed(score, objective)

    def settle(self, now: float, objective: float) -> None:
        """End the alarm once the mean is back above the objective; called per record, so that replays agree."""
        if self._detector.alarmed:
            self._detector.settle(self.window.mean(now), objective)

    def expire(self, now: float) -> bool:
        """Forget sessions that are too old, and take the looks at versions that are due; whether anything changed."""
        expired = [window.expire(now) for window in (self.window, *self._versions.values())]
        self._versions = {v: each for v, each in self._versions.items() if len(each)}
        if len(self._versions) < 2:
            return any(expired)
        held = {version: each.counting(now) for version, each in self._versions.items()}
        earlier, self.looks = self.looks, look_at(held, self.looks)
        return self.looks != earlier or any(expired)

    def versions(self, current: frozenset[str] | None) -> Iterator[tuple[str, Window]]:
        for version, window in sorted(self._versions.items()):
            if current is None or version in current:
                yield version, window

    def is_missing(self, mean: float, objective: float) -> bool:
        return self._detector.alarmed and mean <= objective

    def record(self) -> WindowRecord:
        return WindowRecord(
            entries=self.window.entries,
            versions={version: each.entries for version, each in self._versions.items()},
            looks=self.looks,
            detector=self._detector,
            last_score=self.last_score,
            next_offsets=self.next_offsets,
            fed=self._fed.ids,
        )

    @classmethod
    def of(cls, labels: Labels, record: WindowRecord, limits: AgentWindow) -> Target:
        target = cls(labels, limits)
        target.last_score = record.last_score
        target.window = target._empty(record.entries)
        target._versions = {v: target._empty(each) for v, each in record.versions.items()}
        target.looks = dict(record.looks)
        target._detector = record.detector
        target.next_offsets = dict(record.next_offsets)
        for each in record.fed:
            target._fed.add(each)
        return target

    def _empty(self, entries: tuple[WindowEntry, ...] = ()) -> Window:
        return Window(
            sessions=self._limits.sessions,
            max_age=self._limits.max_age,
            entries=entries,
            spare=self._limits.sessions if self.labels.scope == "session" else 0,
        )


def _hand_over(windows: Iterable[Window], entry: WindowEntry) -> bool | None:
    """In all windows, or in none when one holds a later score of the session."""
    held = [(w, mine) for w in windows if (mine := w.get(entry.session)) is not None]
    if any(mine.rank > entry.rank for _, mine in held):
        return None
    for window, mine in held:
        window.mark_gone(mine)
    return any(not mine.gone for _, mine in held)


def look_at(
    versions: Mapping[str, Sequence[WindowEntry]], taken: Mapping[str, VersionLooksRecord]
) -> dict[str, VersionLooksRecord]:
    """By version, the looks that were taken and those that are due; versions without sessions are forgotten.

    Which version was before is decided when a version is first seen. A look is taken once, within ten seconds of the
    version's 20th, 40th, 80th and 160th session, beside what the other version had then: so a verdict stays, although
    both go on and their oldest sessions leave the windows.
    """
    return {
        name: _grown(name, taken.get(name), versions)
        for name, entries in versions.items()
        if entries
    }


def _grown(
    name: str, taken: VersionLooksRecord | None, versions: Mapping[str, Sequence[WindowEntry]]
) -> VersionLooksRecord:
    if taken is None:
        taken = VersionLooksRecord(before(name, versions))
    if taken.baseline is None:
        return taken
    mine, other = (version_of(each, versions.get(each, ())) for each in (name, taken.baseline))
    looks = looks_of(
        mine.scores, other.scores, left_out=mine.left_out, taken=taken.looks, clumped=True
    )
    return VersionLooksRecord(taken.baseline, looks)


class RecentIds:
    """The newest `limit` ids; the one that was not met for longest is forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, id_: str) -> bool:
        """Remember the id; True when it is new."""
        if id_ in self._ids:
            self._ids.move_to_end(id_)
            return False
        if len(self._ids) >= self._limit:
            self._ids.popitem(last=False)
        self._ids[id_] = None
        return True

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
