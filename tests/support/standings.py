"""How an agent stands, as the exporter would say it of the traces of `tests/support/api_records.py`."""

from typing import Any

from msgspec.structs import replace

from collector.records.standing import (
    Drop,
    OpenRunaway,
    Standing,
    Standings,
    VersionStanding,
    WindowMean,
)
from evaluators.model import Trace
from tests.support import api_records as make


def drop(**fields: Any) -> Drop:
    """Reliability is worse than its own past."""
    worse = Drop(
        evaluator="agent_reliability",
        scope="session",
        direction="worse",
        since=make.START,
        mean_rank=0.21,
        sessions=63,
    )
    return replace(worse, **fields)


def standings(reliability: float, *drops: Drop, sessions: int = 63) -> Standings:
    """Of the agent planner, whose only version is 1.4.2."""
    version = VersionStanding(
        agent_version="1.4.2",
        reliability=reliability,
        consistency=None,
        sessions=sessions,
        last_session=make.START,
    )
    window = WindowMean(mean=reliability, lower=0.125, upper=0.5, samples=sessions)
    standing = Standing(
        service="support-bot",
        agent="planner",
        versions=(version,),
        reliability=window,
        drops=drops,
    )
    return {("support-bot", "planner"): standing}


def running_away(of: Trace) -> Standings:
    """Of the agent of an open trace that repeats a call."""
    runaway = OpenRunaway(
        trace_id=of.trace_id,
        service=of.service,
        agent=of.agent,
        session_id=of.session_id,
        reason="repeated_calls",
        since=make.START,
        until=make.START + 3600,
    )
    standing = Standing(service=of.service, agent=of.agent, runaways=(runaway,))
    return {(of.service, of.agent): standing}
