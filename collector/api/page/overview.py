"""The overview: what needs attention, and every agent with its trend and its versions side by side."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.api.about import Row
from collector.api.agents import agent_shown, standing_of
from collector.api.charts import IndexReader, PlacedVersion
from collector.api.page import chart, series
from collector.api.page.agent import ended, nearest
from collector.api.page.agent_rows import change, fault_row, headline_first
from collector.api.page.sheet import Sheet
from collector.api.page.timespan import Timespan
from collector.api.page.views import duration, score, words
from collector.records.standing import Drop, Standing, Standings
from evaluators.counts import amount
from evaluators.dialects.dialect import NO_SETTING
from evaluators.formulas.past_limits import PastLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    text: str  # what is lacking, and how many evaluators say less than they could
    setting: str | None
    """The first line of what exports it, in the agent's process; None: nothing is known that does."""


def badges(found: Row) -> Mapping[str, Badge]:
    """By service, of findings as `Findings.now` gives them; a service whose evaluators all see enough has none."""
    lacks: dict[str, dict[str, None]] = {}
    blind: dict[str, set[str]] = {}
    settings: dict[str, str] = {}
    sheet = Sheet("spanwise doctor")
    for stack in found["stacks"]:
        service = stack["service"]
        for finding in stack["findings"]:
            if not finding["stops"]:
                continue
            says = sheet.text(finding["says"]) if finding["says"] else words(finding["lack"])
            lacks.setdefault(service, {})[says] = None
            blind.setdefault(service, set()).update(finding["stops"])
            for advice in finding["advice"]:
                if advice["setting"] != NO_SETTING:
                    settings.setdefault(service, advice["setting"].partition("\n")[0])
    return {
        service: Badge(
            text=f"{next(iter(said))}{f' and {len(said) - 1} more' if len(said) > 1 else ''}: "
            f"{amount(len(blind[service]), 'evaluator')} blind",
            setting=sheet.name(settings[service]) if service in settings else None,
        )
        for service, said in lacks.items()
    }


PARTS = 24  # points of a sparkline
BEHIND = 25  # sessions of each version behind a point, at most: the newest
COMPARED = 100  # sessions before a drop and since, whose means are shown
ALARMS = 20  # agents whose drops are shown with the means before and since
VERSIONS = 4  # versions that are under an agent; its page has more
RUNAWAYS = 6  # traces that run away that are named, of one agent


def overview(
    reader: IndexReader,
    placed: Sequence[PlacedVersion],
    standings: Standings,
    span: Timespan,
    badges: Mapping[str, Badge],
    now: float,
) -> list[dict[str, Any]]:
    """A row for each agent: those that run away first, then those that fail or got worse, then the latest seen.

    `span`: the time that the charts show, whose end is later than `now`. `badges`: by service, what the doctor found.
    """
    by_agent: dict[tuple[str, str], list[PlacedVersion]] = {}
    for each in placed:
        by_agent.setdefault((each.entry.service, each.entry.agent), []).append(each)
    found: list[dict[str, Any]] = []
    detailed = 0
    for versions in by_agent.values():
        service, agent = versions[0].entry.service, versions[0].entry.agent
        known = standing_of(versions[0].entry, standings)
        standing = known or Standing(service=service, agent=agent)
        is_detailed = bool(standing.drops) and detailed < ALARMS
        detailed += is_detailed
        row = _row(reader, versions, standings, standing, span, now, is_detailed=is_detailed)
        found.append({**row, "badge": badges.get(service)})
    return sorted(found, key=lambda row: (not row["runaways"], not row["needs_attention"]))


def _row(
    reader: IndexReader,
    versions: Sequence[PlacedVersion],
    standings: Standings,
    standing: Standing,
    span: Timespan,
    now: float,
    *,
    is_detailed: bool,
) -> dict[str, Any]:
    rows = [each.row for each in versions]
    drops, runaways, faults = standing.drops, standing.runaways, standing.faults
    alarms = [
        _alarm(reader, rows, each, now, is_detailed=is_detailed) for each in headline_first(drops)
    ]
    shown = [_version(reader, each, standings) for each in versions]
    means = reader.reliability(rows, span.edges, BEHIND)
    return {
        **{key: shown[0][key] for key in ("service", "agent", "headline", "window", "last_seen")},
        "versions": shown[:VERSIONS],
        "more": len(shown[VERSIONS:]),
        "spark": chart.line(means, 1.0),
        "said": series.summary(f"reliability of the last {span.name}", means, score),
        "detector": _detector(standing, span),
        "faults": [fault_row(each, now) for each in faults],
        "alarms": alarms,
        "runaways": [
            {
                "trace_id": each.trace_id,
                "session_id": each.session_id,
                "reason": each.reason,
                "for": duration(max(0.0, now - each.since)),
            }
            for each in runaways[:RUNAWAYS]
        ],
        "more_runaways": len(runaways[RUNAWAYS:]),
        "needs_attention": bool(runaways or faults) or any(each["is_bad"] for each in alarms),
        "coverage": reader.coverage(rows),
    }


def _version(reader: IndexReader, placed: PlacedVersion, standings: Standings) -> dict[str, Any]:
    entry = placed.entry
    unscored = None if entry.scored else entry.unscored
    found = agent_shown(entry, standings)
    has_ended = found["headline"] is not None and found["sessions"] is None
    if has_ended:
        found.update(ended(reader, placed.row, entry))
    return {**found, "unscored": unscored, "has_ended": has_ended}


def _alarm(
    reader: IndexReader, rows: Sequence[int], drop: Drop, now: float, *, is_detailed: bool
) -> dict[str, Any]:
    means = None
    if is_detailed and drop.evaluator == "agent_reliability" and math.isfinite(drop.since):
        before, since = reader.means(rows, drop.since, COMPARED)
        if before is not None and since is not None:
            means = f"{score(before)} \u2192 {score(since)}"
    return {**change(drop), "for": duration(max(0.0, now - drop.since)), "means": means}


def _detector(standing: Standing, span: Timespan) -> dict[str, Any] | None:
    watched = nearest(standing)
    if watched is None:
        return None
    values = series.progress(watched.trail, span.edges)
    return {
        "evaluator": watched.evaluator,
        "progress": watched.progress,
        "samples": watched.samples,
        "least": PastLimits().least,
        "spark": chart.line(values, 1.0),
        "said": series.summary("progress of the drop detector to an alarm", values, series.percent),
    }
