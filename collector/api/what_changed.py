"""The sessions before a moment and since it: which they are, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from collector.api.agents import standing_of
from collector.api.charts import Charts, Looking, Point, Version
from collector.api.store import AgentEntry
from collector.base.clock import Clock
from collector.base.telemetry import short
from collector.records.standing import AgentLabels, Standing, Standings
from evaluators.formulas.differences import Difference, differences

COMPARED = 200
"""Sessions before, and since, that are compared: those next to the moment before it, the newest since."""
LOOKED = 10
"""Agents of one answer for which it is looked what differs; for the others it is unknown."""


Differing: TypeAlias = Mapping[AgentLabels, Sequence[Difference]]
"""What differs, by agent."""


class Sides(NamedTuple):
    """The newest first."""

    before: list[Point]
    since: list[Point]


def sides(
    looking: Looking, versions: Sequence[Version], *, since: float, settle: float, now: float
) -> Sides:
    """The sessions of both.

    A session is told apart by when it changed last and when it began: one that began long before the moment, and has
    changed since, is of neither side.
    """
    before = looking.points(versions, 0.0, since, COMPARED)
    return Sides(before, looking.points(versions, since, now + 1, COMPARED, began=since - settle))


def differing(looking: Looking, of: Sides) -> list[Difference]:
    """What clearly more or fewer of the sessions have since; no causes."""
    return differences(*([looking.facts(point.row) for point in side] for side in of))


def got_worse(standing: Standing) -> float | None:
    """When the first of what is wrong now began, log time; None: nothing is."""
    faults = [each.since for each in standing.faults]
    drops = [each.since for each in standing.drops if each.direction == "worse"]
    return min([*faults, *drops], default=None)


def differing_by_agent(
    charts: Charts,
    agents: Iterable[AgentEntry],
    standings: Standings,
    *,
    settle: float,
    clock: Clock,
) -> Differing:
    """What differs for those agents that got worse, of at most LOOKED."""
    since: dict[AgentLabels, tuple[AgentEntry, float]] = {}
    for agent in agents:
        standing = standing_of(agent, standings)
        moment = None if standing is None else got_worse(standing)
        if moment is not None and len(since) < LOOKED:
            since.setdefault((short(agent.service), short(agent.agent)), (agent, moment))
    if not since:
        return {}
    now = clock()
    with charts.look() as looking:
        return {
            key: differing(
                looking,
                sides(
                    looking,
                    looking.versions(agent.service, agent.agent),
                    since=moment,
                    settle=settle,
                    now=now,
                ),
            )
            for key, (agent, moment) in since.items()
        }
