"""The page that compares two sides of an agent, at `/compare`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import RequestRefused, text_of
from collector.api.charts import ChartVersion, IndexReader, Point
from collector.api.page.agent import session_card
from collector.api.page.site import Pages, Verdict
from collector.api.page.views import duration, usd
from collector.api.session_filter import moment_of
from collector.api.what_changed import FOR_EVER, newest_of, session_side
from collector.base.telemetry import short
from collector.records.comparison import in_words, with_faults
from collector.records.moved import Moved, moved
from collector.records.what_changed import (
    SessionSide,
    ToolCounts,
    counted_since,
    of_tools,
    tool_counts,
    what_changed,
)
from evaluators.formulas.differences import words_of
from evaluators.formulas.distribution import bounds

TOOLS = 12
PAIRS = 5
"""Kinds of question of which a session of each side is shown."""
ALIKE = 0.5  # the share of their words, of all words of both, that two questions have in common to be of one kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFilter:
    version: str | None = None  # None: of every version; "": of those that name none
    first: float = 0.0
    """Of those that changed last from this moment on, Unix seconds, and before `last`."""
    last: float = FOR_EVER

    @property
    def is_whole(self) -> bool:
        """Whether it is a version, at any time."""
        return self.version is not None and (self.first, self.last) == (0.0, FOR_EVER)

    def parted_from(self, other: "SideFilter") -> float | None:
        """The moment that parts this side from the other one, where both are all sessions but for that."""
        if (self, other) != (SideFilter(last=self.last), SideFilter(first=self.last)):
            return None
        return self.last


def usual_sides(
    versions: Sequence[ChartVersion], given: Mapping[str, SideFilter]
) -> tuple[SideFilter, SideFilter]:
    """Baseline and candidate: what is given, else the newest version and the one before it."""
    newest = sorted(versions, key=lambda each: each.first, reverse=True)
    names = [each.entry.agent_version or "" for each in newest]
    candidate = given.get("candidate") or SideFilter(version=names[0])
    others = [name for name in names if name != candidate.version]
    baseline = given.get("baseline") or SideFilter(version=others[0] if others else names[0])
    return baseline, candidate


def two_sides(
    reader: IndexReader,
    versions: Sequence[ChartVersion],
    baseline: SideFilter,
    candidate: SideFilter,
    counted: Mapping[str, ToolCounts] | None = None,
    known: Mapping[str, ToolCounts] | None = None,
) -> dict[str, Any]:
    """Scores, tools, time, cost, and sessions of both for the same kind of question; the newest COMPARED of each.

    `counted`: as of `records.what_changed`. `known`: what fault watches counted of some tools, where it is None.
    """
    names = reader.names()
    points = [
        newest_of(reader, versions, side.version, side.first, side.last)
        for side in (baseline, candidate)
    ]
    before, since = ([session_side(reader, point, names) for point in side] for side in points)
    counts = counted
    if counts is None:
        counts = {**tool_counts(before[::-1], since[::-1]), **(known or {})}
    changed = what_changed(before, since, counts)
    return {
        "sessions": (len(before), len(since)),
        "rows": [
            _scores(each, before, since)
            for each in moved([each.scores for each in before], [each.scores for each in since])
        ],
        "tools": tools_compared(counts),
        "amounts": [
            (
                "Time of a session, median",
                *(_middle((s.seconds for s in side), duration) for side in (before, since)),
            ),
            (
                "Cost of a session, median",
                *(_middle((s.cost for s in side), usd) for side in (before, since)),
            ),
        ],
        "changed": changed,
        "pairs": _pairs(reader, names, (points[0], before), (points[1], since)),
    }


def _scores(
    each: Moved, before: Sequence[SessionSide], since: Sequence[SessionSide]
) -> dict[str, Any]:
    def interval(side: Sequence[SessionSide]) -> Any:
        return bounds([s.scores[each.evaluator].score for s in side if each.evaluator in s.scores])

    return {"moved": each, "before": interval(before), "since": interval(since)}


def tools_compared(counted: Mapping[str, ToolCounts]) -> list[dict[str, Any]]:
    """Tools that failed on either side, those first whose share of failing sessions rose most."""
    found: list[tuple[float, dict[str, Any]]] = []
    for tool, counts in counted.items():
        sides = [(each.failures, each.uses) for each in (counts.before, counts.since)]
        if not any(failed for failed, _ in sides):
            continue
        fell = [failed / used if used else 0.0 for failed, used in sides]
        row = {"tool": tool, "before": sides[0], "since": sides[1]}
        found.append((fell[0] - fell[1], row))
    return [each for _, each in sorted(found, key=lambda each: (each[0], each[1]["tool"]))][:TOOLS]


def _middle(values: Iterable[float | None], shape: Any) -> str | None:
    known = [each for each in values if each is not None]
    return shape(median(known)) if known else None


def _pairs(
    reader: IndexReader,
    names: dict[int, str],
    before: tuple[Sequence[Point], Sequence[SessionSide]],
    since: tuple[Sequence[Point], Sequence[SessionSide]],
) -> list[tuple[Any, Any]]:
    """The worst sessions of the candidate, each of another kind of question, beside the baseline's most alike."""
    asked = [(point, _words(side)) for point, side in zip(*before, strict=True)]
    worst = sorted(
        (
            (point, _words(side))
            for point, side in zip(*since, strict=True)
            if point.reliability is not None
        ),
        key=lambda each: each[0].reliability or 0.0,
    )
    chosen: list[tuple[Point, Point, frozenset[str]]] = []
    for point, words in worst:
        if len(chosen) == PAIRS:
            break
        if not words or any(_alike(words, other) >= ALIKE for _, _, other in chosen):
            continue
        best = max(asked, key=lambda each: _alike(words, each[1]), default=None)
        if best is not None and _alike(words, best[1]) >= ALIKE:
            chosen.append((best[0], point, words))
    shown = [[reader.shown(point.row, names) for point in pair[:2]] for pair in chosen]
    return [
        (session_card(one), session_card(other))
        for one, other in shown
        if one is not None and other is not None
    ]


def _words(session: SessionSide) -> frozenset[str]:
    """Of the question that the card shows: the session's other questions may be of another kind."""
    return frozenset(words_of(session.question))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one | other)
    return len(one & other) / both if both else 0.0


EVERY = "*"  # the version that stands for all of them, in the address


class TwoSidesPages(Pages):
    def routes(self) -> list[Route]:
        return [Route("/compare", self.compare)]

    async def compare(self, request: Request) -> Response:
        service, agent = text_of(request, "service"), text_of(request, "agent")
        if service is None or agent is None:
            return self.site.rendering.missing("agent")
        given: dict[str, SideFilter] = {}
        wrong: list[str] = []
        for name in ("baseline", "candidate"):
            version = text_of(request, name)
            texts = [text_of(request, f"{name}_{end}") for end in ("from", "to")]
            if version is None and texts == [None, None]:
                continue
            first, last = (self._moment(text, wrong) for text in texts)
            given[name] = SideFilter(
                version=None if version == EVERY else version,
                first=0.0 if first is None else first,
                last=FOR_EVER if last is None else last,
            )

        def versions_of() -> Sequence[ChartVersion]:
            with self.site.index.reading() as reader:
                return reader.versions(service, agent)

        known_versions = await self.site.off_loop.run(versions_of)
        sides = usual_sides(known_versions, given) if known_versions else None
        if sides is None:
            return self.site.rendering.missing("agent", agent)
        if sides[0] == sides[1]:
            wrong.append("Both sides are the same: choose another version, or a time.")
        # Here: both read what the event loop owns.
        said = _said(self.site.verdict, service, agent, *sides)
        counted = self._counted_of(service, agent, *sides)
        known = self._known_of(service, agent, *sides)

        def page() -> Response:
            with self.site.index.reading() as reader:
                versions = reader.versions(service, agent)
                view = two_sides(reader, versions, *sides, counted, known)
            # What the watches counted has decided already.
            changed = None if counted is not None else view["changed"]
            found = None if said is None else with_faults(said, changed)
            shown = zip(("baseline", "candidate"), sides, strict=True)
            return self.site.rendering.page(
                "two_sides.html",
                service=service,
                agent=agent,
                sides=[_shown(*each) for each in shown],
                versions=[each.entry.agent_version or "" for each in versions],
                every=EVERY,
                verdict=found and (found["verdict"], in_words(found)),
                wrong=wrong,
                view=view,
            )

        return await self.site.off_loop.run(page)

    def _moment(self, text: str | None, wrong: list[str]) -> float | None:
        moment = None if text is None else moment_of(text, self.site.clock())
        if text is not None and moment is None:
            wrong.append(
                f"{text[:80]} is neither a time such as 2026-03-01T14:00 nor a length such as 7d"
            )
        return moment

    def _counted_of(
        self, service: str, agent: str, baseline: SideFilter, candidate: SideFilter
    ) -> Mapping[str, ToolCounts] | None:
        """What the fault watches counted, where both sides are versions, whole."""
        if not (baseline.is_whole and candidate.is_whole):
            return None
        names = (baseline.version or "", candidate.version or "")
        return of_tools(self.site.counted((service, agent), *names))

    def _known_of(
        self, service: str, agent: str, baseline: SideFilter, candidate: SideFilter
    ) -> Mapping[str, ToolCounts]:
        """Of tools that began to fail at the moment that parts the sides, what banner and alert say, too."""
        moment = baseline.parted_from(candidate)
        standing = self.site.standings().get((short(service), short(agent)))
        return {} if moment is None or standing is None else counted_since(standing.faults, moment)


def _said(
    verdict: Verdict, service: str, agent: str, baseline: SideFilter, candidate: SideFilter
) -> dict[str, Any] | None:
    """May this release go on: the verdict. Only where two versions are compared, whole."""
    if baseline == candidate or not all(
        each.is_whole and each.version for each in (baseline, candidate)
    ):
        return None
    try:
        return verdict(
            {
                "service": service,
                "agent": agent,
                "baseline": baseline.version,
                "candidate": candidate.version,
            }
        )
    except RequestRefused:
        return None


def _shown(name: str, side: SideFilter) -> dict[str, Any]:
    return {
        "name": name,
        "version": EVERY if side.version is None else side.version,
        "first": _text(side.first) if side.first else "",
        "last": _text(side.last) if side.last < FOR_EVER else "",
    }


def _text(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
