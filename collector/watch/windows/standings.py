"""The states of agents, from the targets of their headline evaluators. Pure: time is an argument."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from collector.base.telemetry import OTHER
from collector.records.second_opinion import SecondOpinion
from collector.records.signal import HEADLINES
from collector.records.standing import (
    WORST,
    AgentLabels,
    Drop,
    Fault,
    Standing,
    Standings,
    VersionStanding,
    WindowMean,
)
from collector.records.windows import WindowEntry
from collector.watch.windows.target import Target
from collector.watch.windows.window import Stats, Window
from evaluators.model import Scope

RELIABILITY = "agent_reliability"  # the evaluator by which a failed session is worse than another

LEAST_SINCE = 4
"""Sessions of a version since a change from which on its mean is of these: what fails needs as many that failed."""


class Headline(NamedTuple):
    target: Target
    current: frozenset[str] | None  # the versions of its agent that count; None: all
    since: float | None  # when what is now began to change; None: nothing has changed


def standing_of(headlines: Iterable[Headline], now: float) -> Standing:
    """The state of the one agent of these targets at log time `now`."""
    service = agent = ""
    means: dict[str, WindowMean | None] = {}
    versions: dict[str, dict[str, tuple[Window, float]]] = {}
    for target, current, since in headlines:
        service, agent, evaluator, _ = target.labels
        field = HEADLINES[evaluator]
        means[field] = _mean(target.window.stats(now, current))
        changed = None if since is None else _mean(target.window.stats(now, current, since), since)
        if changed is not None:
            means[field], means[f"window_{field}"] = changed, means[field]
        for version, window in target.versions(current):
            versions.setdefault(version, {})[field] = (window, since or 0.0)
    shown = [_version(version, versions[version], now) for version in sorted(versions)]
    return Standing(
        service=service,
        agent=agent,
        versions=tuple(each for each in shown if each.sessions),
        reliability=means.get("reliability"),
        consistency=means.get("consistency"),
        window_reliability=means.get("window_reliability"),
        window_consistency=means.get("window_consistency"),
    )


def with_facts(
    standings: Mapping[AgentLabels, Standing],
    facts: Mapping[str, Mapping[AgentLabels, Sequence[object]]],
) -> dict[AgentLabels, Standing]:
    """What is known of agents besides, by the field that it fills; an agent that shares its labels has no standing."""
    found = {**standings}
    for field, by_agent in facts.items():
        for agent, some in by_agent.items():
            standing = found.get(agent) or Standing(service=agent[0], agent=agent[1])
            found[agent] = replace(standing, **{field: tuple(some)})
    return {agent: each for agent, each in found.items() if OTHER not in agent}


def with_worst(
    standings: Mapping[AgentLabels, Standing],
    entries: Callable[[AgentLabels, str, Scope], Sequence[WindowEntry]],
) -> dict[AgentLabels, Standing]:
    """Each fault and each fall with its worst sessions; `entries`: of a window (agent, evaluator, scope)."""

    def of_drop(agent: AgentLabels, drop: Drop) -> Drop:
        if drop.direction != "worse":
            return drop
        seen = entries(agent, drop.evaluator, drop.scope)
        since = [each for each in seen if each.covered and each.time >= drop.since]
        ordered = sorted(since, key=lambda each: (each.score, -each.time))
        return replace(drop, worst=tuple(each.session for each in ordered[:WORST]))

    def of_fault(fault: Fault, scores: Mapping[str, float]) -> Fault:
        ordered = sorted(fault.sessions, key=lambda session: scores.get(session, 1.0))
        return replace(fault, worst=tuple(ordered[:WORST]))

    found = {**standings}
    for agent, standing in standings.items():
        drops = tuple(of_drop(agent, each) for each in standing.drops)
        found[agent] = replace(standing, drops=drops)
        if standing.faults:
            scored = entries(agent, RELIABILITY, "session")
            scores = {each.session: each.score for each in scored if each.covered}
            faults = tuple(of_fault(each, scores) for each in standing.faults)
            found[agent] = replace(found[agent], faults=faults)
    return found


def with_opinions(
    standings: Standings, opinions: Mapping[AgentLabels, SecondOpinion], judged_by: str | None
) -> Standings:
    if judged_by is None:
        return standings
    return {
        agent: replace(
            each,
            judged_by=judged_by,
            second_opinion=opinions.get(agent) if each.drops else None,
        )
        for agent, each in standings.items()
    }


def _version(
    version: str, windows: Mapping[str, tuple[Window, float]], now: float
) -> VersionStanding:
    means: dict[str, float] = {}
    sessions = 0
    last = 0.0
    for field, (window, since) in windows.items():
        stats = window.stats(now, since=since)
        if stats is None or stats.samples < LEAST_SINCE:
            stats = window.stats(now)
        if stats is not None:
            means[field] = stats.bounds.mean
        counting = window.counting(now)
        sessions = max(sessions, len(counting))
        last = max((last, *(each.time for each in counting)))
    return VersionStanding(
        agent_version=version,
        reliability=means.get("reliability"),
        consistency=means.get("consistency"),
        sessions=sessions,
        last_session=last,
    )


def _mean(stats: Stats | None, since: float | None = None) -> WindowMean | None:
    if stats is None:
        return None
    mean, lower, upper = stats.bounds.mean, stats.bounds.lower, stats.bounds.upper
    return WindowMean(mean=mean, lower=lower, upper=upper, samples=stats.samples, since=since)
