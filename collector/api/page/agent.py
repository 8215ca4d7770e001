"""The page of one agent: charts over time, what happened when, what changed since, and sessions of both sides."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.api.charts import ChartVersion, IndexReader, Point, ShownSession
from collector.api.page import chart, series
from collector.api.page.agent_rows import HEADLINE, WORK, change, fault_row, headline_first
from collector.api.page.chart import Chart, ChartMark, Kind
from collector.api.page.timespan import LENGTHS, Timespan, timespan
from collector.api.page.views import duration, usd
from collector.api.query import time_shown
from collector.api.store import AgentEntry
from collector.api.viewer_zone import since as since_shown
from collector.api.what_changed import differing, of_failing, scores_of, sides
from collector.records.moved import EvaluatorScores, Moved, moved
from collector.records.standing import Standing, WatchedScores

PARTS = 48  # points of a chart
BEHIND = 100  # sessions behind a point, at most: the newest
JUDGED = 25  # the same, of the shares that fail
TYPICAL = 51  # the newest sessions before the moment, among which typical ones are looked for
EACH = 3  # sessions of a side that are shown
MOMENTS = 6  # moments since which changes can be asked for
WORSE = frozenset({"fault", "drop"})
"""Kinds of moments of which one stands for the other: a fault often explains a drop."""
NEAR = 0.03  # of the width of a chart: marks that are nearer are one
EVALUATORS = 64  # rows of what changed


@dataclass(frozen=True, slots=True)
class Moment:
    time: float
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class AgentRequest:
    service: str
    agent: str
    length: str | None
    since: float | None


def agent_page(
    reader: IndexReader,
    asked: AgentRequest,
    standing: Standing | None,
    *,
    now: float,
    settle: float,
) -> dict[str, Any] | None:
    """What the template shows; None: the index has no such agent.

    `standing`: the exporter's numbers of this agent. `now`: Unix seconds. `settle`: seconds after which a session's
    score enters the detectors.
    """
    versions = reader.versions(asked.service, asked.agent)
    if not versions:
        return None
    known = standing or Standing(service=asked.service, agent=asked.agent)
    moments = _moments(versions, known)
    since = asked.since if asked.since is not None else _since(moments)
    span = timespan(
        asked.length,
        now=now,
        seen=[at / 1e6 for each in versions for at in (each.first, each.entry.last)],
        since=next((each.time for each in moments if each.kind != "release"), None),
        parts=PARTS,
    )
    parts = reader.parts(versions, span.edges, BEHIND)
    names = reader.names()
    return {
        "span": span,
        "lengths": list(LENGTHS),
        "versions": [_version(reader, each, standing) for each in versions],
        "window": standing,
        "faults": [fault_row(each, now) for each in known.faults],
        "changes": [change(each) for each in headline_first(known.drops)],
        "runaways": list(known.runaways),
        "charts": _charts(parts, span, known),
        "marks": _marks(moments, span),
        "moments": [
            {"since": f"{each.time:.6f}", "kind": each.kind, "text": each.text}
            for each in offered(moments)
        ],
        "since": since,
        "since_shown": None if since is None else since_shown(max(0.0, since)),
        "compared": None
        if since is None
        else _compared(
            reader,
            versions,
            parts,
            names,
            since=since,
            settle=settle,
            now=now,
            failing=[each.tool for each in known.faults if each.fault == "tool_failed"],
        ),
        "evaluators": _failing(reader, parts, names) if since is None else [],
        "last_seen": time_shown(max(each.entry.last for each in versions)),
    }


def _moments(versions: Sequence[ChartVersion], standing: Standing) -> list[Moment]:
    found = [Moment(each.since, "fault", each.words) for each in standing.faults]
    found += [
        Moment(
            each.since,
            "drop" if change(each)["is_bad"] else "better",
            each.evaluator.replace("_", " "),
        )
        for each in headline_first(standing.drops)
    ]
    found.sort(key=lambda each: each.kind == "better")
    oldest = min(each.first for each in versions)
    releases = [
        Moment(each.first / 1e6, "release", each.entry.agent_version or "no version")
        for each in sorted(versions, key=lambda each: -each.first)
        if each.first > oldest
    ]
    over = sorted([*releases, *_past(standing)], key=lambda each: -each.time)
    return [*found, *over]


def offered(moments: Sequence[Moment]) -> list[Moment]:
    """The first of them, with the newest release in any case: that is what one can roll back."""
    release = [each for each in moments[MOMENTS - 1 :] if each.kind == "release"][:1]
    return [*moments[: MOMENTS - len(release)], *release]


def _past(standing: Standing) -> list[Moment]:
    """Drops of the reliability that are over, at their alarms: that is what is kept of them."""
    return [
        Moment(time, "past", HEADLINE.replace("_", " "))
        for each in standing.watched
        if each.evaluator == HEADLINE
        for time in series.past_alarms(each.trail)
    ]


def _since(moments: Sequence[Moment]) -> float | None:
    """When the change began that matters most.

    The first fault that is active, which is the cause, else the first drop, else the newest of what else happened.
    """
    for kind in ("fault", "drop"):
        if times := [each.time for each in moments if each.kind == kind]:
            return min(times)
    return max((each.time for each in moments), default=None)


def _marks(moments: Iterable[Moment], span: Timespan) -> list[ChartMark]:
    """What happened within the span; changes of scores that began at nearly the same time are one mark."""
    found: list[tuple[float, Kind, list[str]]] = []
    for each in moments:
        place = span.place(each.time)
        if place is None:
            continue
        near = (
            texts
            for at, kind, texts in found
            if abs(at - place) < NEAR and (kind == each.kind or {kind, each.kind} <= WORSE)
        )
        texts = next(near, None)
        if texts is None:
            found.append((place, each.kind, [each.text]))
        else:
            texts.append(each.text)
    return chart.apart([chart.mark(at, kind, texts) for at, kind, texts in found])


def _version(
    reader: IndexReader, version: ChartVersion, standing: Standing | None
) -> dict[str, Any]:
    name = version.entry.agent_version
    known = standing.versions if standing else ()
    numbers = next((each for each in known if each.agent_version == (name or "")), None)
    return {
        "name": name,
        "first_seen": time_shown(version.first),
        "last_seen": time_shown(version.entry.last),
        "traces": version.entry.traces,
        "numbers": numbers,
        "ended": ended(reader, version.row, version.entry) if standing and not numbers else None,
        "unscored": None if version.entry.scored else version.entry.unscored,
    }


def ended(reader: IndexReader, row: int, entry: AgentEntry) -> dict[str, Any]:
    """The last reliability and sessions of a version without numbers of the metrics, as the index has them."""
    return {"reliability": reader.means([row], 0.0, BEHIND)[1], "sessions": entry.sessions}


def _charts(parts: series.Parts, span: Timespan, standing: Standing) -> dict[str, Chart]:
    watched = nearest(standing)
    found = {"reliability": series.reliability(parts, span, standing.reliability)}
    if watched is not None:
        values = series.progress(watched.trail, span.edges)
        found["detector"] = series.detector(values, span, watched.evaluator.replace("_", " "))
    seconds = series.seconds_per_trace
    found["latency"] = series.amounts(
        "Seconds per trace",
        {
            "median": series.at_percentile(parts, seconds, 0.5),
            "p95": series.at_percentile(parts, seconds, 0.95),
        },
        parts,
        span,
        duration,
    )
    costs = series.per_session(parts, lambda point: point.cost)
    found["cost"] = series.amounts(
        "Cost per session",
        {"mean": costs, "per successful session": series.per_success(parts)},
        parts,
        span,
        usd,
    )
    taken = {
        "input": series.per_session(parts, lambda point: point.input_tokens),
        "output": series.per_session(parts, lambda point: point.output_tokens),
    }
    found["tokens"] = series.amounts("Tokens per session", taken, parts, span, series.thousands)
    return found


def nearest(standing: Standing) -> WatchedScores | None:
    """The comparison nearest to an alarm, work apart; of equals the reliability's, then the one with most past."""
    return max(
        (each for each in standing.watched if each.evaluator != WORK),
        key=lambda each: (each.progress or 0.0, each.evaluator == HEADLINE, each.samples),
        default=None,
    )


def _compared(
    reader: IndexReader,
    versions: Sequence[ChartVersion],
    parts: series.Parts,
    names: Mapping[int, str],
    *,
    since: float,
    settle: float,
    now: float,
    failing: Sequence[str],
) -> dict[str, Any]:
    """Evaluators and sessions before a moment and since, and what differs between them.

    `failing`: tools of which it is said what their failed sessions have more often than the others since.
    """
    both = sides(reader, versions, since=since, settle=settle, now=now)
    before, after = both
    scores = [[scores_of(reader.outcomes(point.row), names) for point in side] for side in both]
    shares = _shares(reader, parts, names)
    return {
        "before": len(before),
        "after": len(after),
        "differs": differing(reader, both),
        "of_failing": of_failing(reader, after, failing),
        "rows": [_row(each, shares) for each in moved(*scores)[:EVALUATORS]],
        "pairs": {
            "before": _looked_at(reader, before, names, worst=False),
            "since": _looked_at(reader, after, names, worst=True),
        },
    }


def _row(each: Moved, shares: Sequence[Sequence[Mapping[str, EvaluatorScores]]]) -> dict[str, Any]:
    values = series.failing(each.evaluator, shares)
    name = f"share of {each.evaluator.replace('_', ' ')} that fails"
    return {
        "moved": each,
        "spark": chart.line(values, 1.0),
        "said": series.summary(name, values, series.percent),
        "has_failed": any(values),
        "is_judged": any(value is not None for value in values),
    }


def _failing(
    reader: IndexReader, parts: series.Parts, names: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The evaluators where there is no moment to compare with: those that fail most first."""
    shares = _shares(reader, parts, names)
    sessions = [session for part in shares for session in part]
    rows = [_row(each, shares) for each in moved([], sessions)]
    rows.sort(key=lambda row: (-(row["moved"].since.failing or 0.0), row["moved"].evaluator))
    return rows[:EVALUATORS]


def _shares(
    reader: IndexReader, parts: series.Parts, names: Mapping[int, str]
) -> list[list[dict[str, EvaluatorScores]]]:
    return [
        [scores_of(reader.outcomes(point.row), names) for point in part[:JUDGED]] for part in parts
    ]


def _looked_at(
    reader: IndexReader, points: Sequence[Point], names: Mapping[int, str], *, worst: bool
) -> list[dict[str, Any]]:
    """Some sessions of a side: those with the worst reliability, or of the newest those in the middle."""
    scored = [point for point in points if point.reliability is not None]
    if not worst:
        scored = scored[:TYPICAL]
    ordered = sorted(scored, key=lambda point: point.reliability or 0.0)
    first = 0 if worst else max(0, (len(ordered) - EACH) // 2)
    chosen = ordered[first:]
    shown = [reader.shown(point.row, dict(names)) for point in chosen[:EACH]]
    return [session_card(each) for each in shown if each is not None]


def session_card(shown: ShownSession) -> dict[str, Any]:
    entry = shown.entry
    failed = {name.replace("_", " ") for name, each in shown.outcomes if each.passed is False}
    return {
        "service": entry.service,
        "session_id": entry.session_id,
        "version": entry.agent_version,
        "reliability": entry.reliability,
        "question": shown.question,
        "answer": shown.answer and shown.answer[:300],
        "last": time_shown(entry.last),
        "cost": None if entry.cost is None else usd(entry.cost),
        "seconds": None if entry.seconds is None else duration(entry.seconds),
        "failed": sorted(failed)[:8],
    }
