"""The rows of the page's agents, with what has changed of each in plain words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collector.api.agents import agent_shown, standing_of
from collector.api.query import time_shown
from collector.api.store import AgentEntry, micros
from collector.records.standing import Drop, Standings

_CHANGES = {"worse": "worse than its own past", "better": "better than ever"}
_WORK = {"worse": "more work than ever", "better": "less work than ever"}


def agent_rows(agents: Sequence[AgentEntry], standings: Standings) -> list[dict[str, Any]]:
    """Each version of an agent; what is said of the whole agent stands in the first of its rows."""
    told: set[tuple[str, str]] = set()
    rows: list[dict[str, Any]] = []
    for agent in agents:
        standing = standing_of(agent, standings)
        is_first = (agent.service, agent.agent) not in told
        told.add((agent.service, agent.agent))
        rows.append(
            {
                **agent_shown(agent, standings),
                "unscored": None if agent.scored else agent.unscored,
                "is_first": is_first,
                "runaways": len(standing.runaways) if standing and is_first else 0,
                "changes": [change(each) for each in standing.drops] if standing else [],
            }
        )
    return rows


def running_away(standings: Standings) -> frozenset[tuple[str, str]]:
    """(service, session id) of the sessions with an open trace that runs away."""
    every = (each for standing in standings.values() for each in standing.runaways)
    return frozenset((each.service, each.session_id) for each in every)


def change(drop: Drop) -> dict[str, Any]:
    """A change as the page tells it: its evaluator, what happened, and whether that is bad.

    Less work than ever is: an agent that gives up early works less.
    """
    is_work = drop.evaluator == "work_baseline"
    words = _WORK if is_work else _CHANGES
    since = time_shown(micros(drop.since))[:16].replace("T", " ")
    rank = f"{drop.mean_rank:.2f}".removeprefix("0")
    what = (
        f"{words[drop.direction]} since {since}: "
        f"mean rank {rank} where .5 is as ever, {drop.sessions} {drop.scope}s"
    )
    return {
        "evaluator": drop.evaluator,
        "what": what,
        "is_bad": is_work or drop.direction == "worse",
    }
