"""What charts are made of, from the index: of each part of the time its newest sessions, a bounded number of them.

So a chart takes the same time whatever the index holds, and each of its points says how many sessions are behind it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from collector.api.outcomes import StoredOutcome, unpack
from collector.api.reading import Reading, coverage_in
from collector.api.store import AgentEntry, SessionEntry, whole, write_cursor
from collector.records.trace_views import TraceHeader

VERSIONS = 12  # versions of an agent that charts look at: the latest seen
COVERED = 10  # sessions of each version whose coverage is shown
LOOKED_AT = 8  # traces of a session that are looked at for what they use
_POINT = """
SELECT id, last, reliability, seconds, cost, input_tokens, output_tokens, errors, traces
FROM sessions WHERE agent = ? AND last >= ? AND last < ? ORDER BY last DESC LIMIT ?"""
DAY = 86_400_000_000
"""Microseconds. No session is longer: one that began so long before, by its sender's clock, has a clock that is wrong,
or is a recording that was sent again."""
_BEGUN = _POINT.replace("ORDER", f"AND iif(last - started < {DAY}, started, last) >= ? ORDER")
_SPARK = """
SELECT avg(reliability) FROM (
SELECT reliability FROM sessions WHERE agent = ? AND last >= ? AND last < ? ORDER BY last DESC LIMIT ?)"""

_BEFORE = """
SELECT reliability FROM sessions WHERE agent = ? AND last < ? AND reliability IS NOT NULL ORDER BY last DESC LIMIT ?"""
_SINCE = """
SELECT reliability FROM sessions WHERE agent = ? AND last >= ? AND reliability IS NOT NULL ORDER BY last DESC LIMIT ?"""
_COVERAGE = "SELECT coverage FROM sessions WHERE agent = ? AND coverage IS NOT NULL ORDER BY last DESC LIMIT ?"


class Point(NamedTuple):
    row: int
    last: int  # log time, microseconds
    reliability: float | None
    seconds: float | None  # of its traces together, as cost and tokens
    cost: float | None
    input_tokens: int | None
    output_tokens: int | None
    errors: int
    traces: int


class PlacedVersion(NamedTuple):
    """A version of an agent, with its row in the index."""

    row: int
    entry: AgentEntry


class ChartVersion(NamedTuple):
    """The same, with when its oldest session in the index changed last, microseconds of log time."""

    row: int
    entry: AgentEntry
    first: int


@dataclass(frozen=True, slots=True)
class ShownSession:
    entry: SessionEntry
    question: str | None  # the input of its newest trace, which `answer` answers
    answer: str | None
    outcomes: Sequence[tuple[str, StoredOutcome]]


class IndexReader(Reading):
    """Every question to the index, over one consistent view."""

    def placed(
        self, cursor: bytes | None, service: str | None, agent: str | None, limit: int
    ) -> tuple[list[PlacedVersion], str | None]:
        found = self.agents(cursor, service, agent, limit + 1)
        more = write_cursor(*found[limit - 1][0]) if len(found) > limit else None
        return [PlacedVersion(place[1], entry) for place, entry in found[:limit]], more

    def versions(self, service: str, agent: str) -> list[ChartVersion]:
        found = self.agents(None, service, agent, VERSIONS)
        return [ChartVersion(place[1], entry, self._first(place[1])) for place, entry in found]

    def points(
        self,
        versions: Iterable[ChartVersion],
        first: float,
        last: float,
        most: int,
        *,
        began: float | None = None,
    ) -> list[Point]:
        """The newest sessions of these versions between two moments (Unix seconds), the newest first.

        `began`: only those that began then or later.
        """
        begin, end = whole(1e6 * first), whole(1e6 * last)
        found: list[Point] = []
        for each in versions:
            if each.first < end and each.entry.last >= begin:
                span = (each.row, begin, end)
                if began is None:
                    rows = self._execute(_POINT, (*span, most))
                else:
                    rows = self._execute(_BEGUN, (*span, whole(1e6 * began), most))
                found += map(Point._make, rows)
        return sorted(found, key=lambda point: point.last, reverse=True)[:most]

    def parts(
        self, versions: Collection[ChartVersion], edges: Sequence[float], most: int
    ) -> list[list[Point]]:
        return [self.points(versions, first, last, most) for first, last in pairwise(edges)]

    def reliability(
        self, rows: Iterable[int], edges: Sequence[float], most: int
    ) -> list[float | None]:
        """The mean of each part, of the newest sessions of these versions of an agent."""
        means: list[float | None] = []
        rows = tuple(rows)
        for first, last in pairwise(whole(1e6 * each) for each in edges):
            found = [self._execute(_SPARK, (row, first, last, most)).fetchone()[0] for row in rows]
            known = [each for each in found if each is not None]
            means.append(sum(known) / len(known) if known else None)
        return means

    def means(
        self, rows: Iterable[int], since: float, most: int
    ) -> tuple[float | None, float | None]:
        """The mean reliability of the newest sessions before a moment, and of the newest since."""
        before: list[float] = []
        after: list[float] = []
        at = whole(1e6 * since)
        for row in rows:
            before += (each for (each,) in self._execute(_BEFORE, (row, at, most)))
            after += (each for (each,) in self._execute(_SINCE, (row, at, most)))
        return fmean(before) if before else None, fmean(after) if after else None

    def coverage(self, rows: Iterable[int]) -> tuple[int, int] | None:
        """Of the newest scores of these versions: how many parts were present, of how many expected."""
        present = expected = 0
        for row in rows:
            for (text,) in self._execute(_COVERAGE, (row, COVERED)):
                counts = coverage_in(text)
                present += counts["present"]
                expected += counts["expected"]
        return (present, expected) if expected else None

    def names(self) -> dict[int, str]:
        return dict(self._execute("SELECT id, name FROM evaluators").fetchall())

    def outcomes(self, session: int) -> list[StoredOutcome]:
        found = self._execute("SELECT packed FROM outcomes WHERE session = ?", (session,))
        return [each for (packed,) in found for each in unpack(packed)]

    def newest(self, most: int) -> list[int]:
        found = self._execute("SELECT id FROM sessions ORDER BY last DESC LIMIT ?", (most,))
        return [row for (row,) in found]

    def traces(self, session: int) -> list[TraceHeader]:
        return [each.header for each in self.traces_of(session, LOOKED_AT)]

    def shown(self, row: int, names: dict[int, str]) -> ShownSession | None:
        """A session with its last question and answer; None: it has just gone."""
        entry, newest = self.session(row), self.newest_trace(row)
        if entry is None:
            return None
        asked = (
            (entry.question, None)
            if newest is None
            else (newest.header.input, newest.header.output)
        )
        outcomes = [(names.get(each.evaluator, ""), each) for each in self.outcomes(row)]
        return ShownSession(entry, *asked, outcomes)

    def oldest(self) -> float | None:
        """When the session that was quiet for longest changed last, Unix seconds."""
        last = self._execute("SELECT min(last) FROM sessions").fetchone()[0]
        return None if last is None else last / 1e6

    def _first(self, agent: int) -> int:
        found = self._execute("SELECT min(last) FROM sessions WHERE agent = ?", (agent,))
        return found.fetchone()[0] or 0
