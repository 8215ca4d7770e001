"""The sessions before a moment and since it: which they are, and what differs between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from collector.api.agents import standing_of
from collector.api.charts import ChartVersion, IndexReader, Point
from collector.api.index import Index
from collector.api.outcomes import StoredOutcome
from collector.api.store import AgentEntry
from collector.base.clock import Clock
from collector.base.telemetry import short
from collector.records.moved import EvaluatorScores, summed
from collector.records.standing import AgentLabels, Standing, Standings
from collector.records.trace_views import TraceHeader
from collector.records.what_changed import (
    SessionSide,
    ToolCounts,
    failed_by_tool,
    of_tools,
    what_changed,
)
from evaluators.formulas.differences import Difference, Fact, differences, facts
from evaluators.formulas.fault_watch import Cause

COMPARED = 200  # sessions before, and since, that are compared: those next to the moment before it, the newest since
FOR_EVER = 1e11  # log time that nothing comes after
LOOKED = 10
"""Agents of one answer for which it is looked what differs; for the others it is unknown."""
Differing = Mapping[AgentLabels, Sequence[Difference]]  # what differs, by agent


class Sides(NamedTuple):
    """The newest first."""

    before: list[Point]
    since: list[Point]


def sides(
    reader: IndexReader,
    versions: Sequence[ChartVersion],
    *,
    since: float,
    settle: float,
    now: float,
) -> Sides:
    """The sessions of both.

    When a session changed last and when it began decide its side: one that began long before the moment, and has
    changed since, is of neither side.
    """
    before = reader.points(versions, 0.0, since, COMPARED)
    return Sides(before, reader.points(versions, since, now + 1, COMPARED, began=since - settle))


def differing(reader: IndexReader, of: Sides) -> list[Difference]:
    """What clearly more or fewer of the sessions have since; no causes."""
    return differences(*([facts_of(reader.traces(point.row)) for point in side] for side in of))


def of_failing(
    reader: IndexReader, since: Sequence[Point], tools: Sequence[str]
) -> list[tuple[str, list[Difference]]]:
    """By tool, what clearly more or fewer of the sessions in which it failed have than of the others that used it.

    `before` of a difference is the share of the others. No causes; a tool without a difference is left out.
    """
    if not tools:
        return []
    used: list[tuple[frozenset[Fact], Mapping[str, bool]]] = []
    for point in since:
        traces = reader.traces(point.row)
        calls = (call for trace in traces for call in trace.tool_calls)
        used.append((facts_of(traces), failed_by_tool(calls)))
    found = (
        (
            tool,
            differences(
                [facts for facts, failed in used if failed.get(tool) is False],
                [facts for facts, failed in used if failed.get(tool)],
            ),
        )
        for tool in tools
    )
    return [each for each in found if each[1]]


def between(
    index: Index,
    agent: AgentLabels,
    baseline: str,
    candidate: str,
    counted: Mapping[Cause, ToolCounts],
) -> dict[str, Any] | None:
    """What changed from one version of an agent to another (`records.what_changed`), by their newest sessions.

    None: the index has no session of one of them. It fills again after a restart, and evicts the oldest.
    """
    with index.reading() as reader:
        names = reader.names()
        versions = reader.versions(*agent)
        before, since = (
            [
                session_side(reader, point, names)
                for point in reversed(newest_of(reader, versions, name))
            ]
            for name in (baseline, candidate)
        )
    return what_changed(before, since, of_tools(counted)) if before and since else None


def newest_of(
    reader: IndexReader,
    versions: Iterable[ChartVersion],
    name: str | None,
    first: float = 0.0,
    last: float = FOR_EVER,
) -> list[Point]:
    """The newest sessions of the version with this name, that changed last between two moments; None: of any."""
    chosen = [each for each in versions if name in (None, each.entry.agent_version or "")]
    return reader.points(chosen, first, last, COMPARED)


def session_side(reader: IndexReader, point: Point, names: Mapping[int, str]) -> SessionSide:
    traces = reader.traces(point.row)
    failed = failed_by_tool(call for trace in traces for call in trace.tool_calls)
    scores = scores_of(reader.outcomes(point.row), names)
    question = traces[-1].input if traces else None
    return SessionSide(facts_of(traces), failed, point.seconds, point.cost, scores, question)


def scores_of(
    outcomes: Iterable[StoredOutcome], names: Mapping[int, str]
) -> dict[str, EvaluatorScores]:
    return summed((names.get(each.evaluator, ""), each.score, each.passed) for each in outcomes)


def facts_of(traces: Sequence[TraceHeader]) -> frozenset[Fact]:
    return facts(
        versions=(each.agent_version for each in traces),
        models=(model for each in traces for model in each.models),
        users=(each.user_id for each in traces),
        attributes=(each.attributes for each in traces),
        tools=(call.name for each in traces for call in each.tool_calls),
        questions=(each.input for each in traces),
    )


def got_worse(standing: Standing) -> float | None:
    """Log time at which what is wrong began: the first fault, as the cause, else the first drop; None: nothing is."""
    faults = [each.since for each in standing.faults]
    drops = [each.since for each in standing.drops if each.direction == "worse"]
    return min(faults or drops, default=None)


def differing_by_agent(
    index: Index,
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
    with index.reading() as reader:
        return {
            key: differing(
                reader,
                sides(
                    reader,
                    reader.versions(agent.service, agent.agent),
                    since=moment,
                    settle=settle,
                    now=now,
                ),
            )
            for key, (agent, moment) in since.items()
        }
