"""What is shown of an agent: that it exists comes from the index, its numbers from the exporter's state.

The page and `/api/v1/agents` so show the numbers of the gauges. What the exporter does not know is null, never another
number: before its windows are read back, for an agent without label values of its own, for a version that has ended.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from collector.api.query import time_shown
from collector.api.store import AgentEntry, micros
from collector.base.telemetry import short
from collector.records.signal import HEADLINES
from collector.records.standing import (
    Drop,
    Fault,
    OpenRunaway,
    Standing,
    Standings,
    WatchedScores,
    WindowMean,
)
from evaluators.formulas.differences import Difference


def standing_of(agent: AgentEntry, standings: Standings) -> Standing | None:
    """The state of the agent; None: the exporter does not know."""
    return standings.get((short(agent.service), short(agent.agent)))


def running_away(standings: Standings) -> frozenset[tuple[str, str]]:
    every = (each for standing in standings.values() for each in standing.runaways)
    return frozenset((each.service, each.session_id) for each in every)


def agent_shown(
    agent: AgentEntry, standings: Standings, differs: Sequence[Difference] | None = None
) -> dict[str, Any]:
    """A version of an agent as `/api/v1/agents` lists it.

    `differs`: what differs since it got worse; None: it did not, or no one looked. `headline`, `window`, `faults`,
    `drops`, `detectors` and `runaways` are of all its current versions together.
    """
    standing = standing_of(agent, standings)
    known = standing or Standing(service=agent.service, agent=agent.agent)
    name = short(agent.agent_version or "")
    version = next((each for each in known.versions if each.agent_version == name), None)
    opinion = standing and standing.second_opinion
    return {
        "service": agent.service,
        "agent": agent.agent,
        "agent_version": agent.agent_version,
        "reliability": version and version.reliability,
        "consistency": version and version.consistency,
        "sessions": version and version.sessions,
        "traces": agent.traces,
        "last_seen": time_shown(agent.last),
        "headline": standing
        and {name: _mean(getattr(standing, name), since=True) for name in HEADLINES.values()},
        "window": standing
        and {
            name: _mean(getattr(standing, f"window_{name}") or getattr(standing, name))
            for name in HEADLINES.values()
        },
        "faults": [_dated(each) for each in known.faults],
        "failing_always": [msgspec.to_builtins(each) for each in known.failing_always],
        "drops": [_dated(each) for each in known.drops],
        "second_opinion": opinion and {**msgspec.to_builtins(opinion), "words": opinion.words},
        "differs": None if differs is None else [each._asdict() for each in differs],
        "detectors": [_watched(each) for each in known.watched],
        "runaways": [_runaway(each) for each in known.runaways],
    }


def _mean(mean: WindowMean | None, *, since: bool = False) -> dict[str, Any] | None:
    if mean is None:
        return None
    shown = {name: getattr(mean, name) for name in ("mean", "lower", "upper", "samples")}
    if since:
        shown["since"] = None if mean.since is None else time_shown(micros(mean.since))
    return shown


def _watched(each: WatchedScores) -> dict[str, Any]:
    return {name: getattr(each, name) for name in ("evaluator", "scope", "progress", "samples")}


def _runaway(trace: OpenRunaway) -> dict[str, Any]:
    return {
        "trace_id": trace.trace_id,
        "session_id": trace.session_id,
        "reason": trace.reason,
        "since": time_shown(micros(trace.since)),
    }


def _dated(found: Fault | Drop) -> dict[str, Any]:
    return {**msgspec.to_builtins(found), "since": time_shown(micros(found.since))}
