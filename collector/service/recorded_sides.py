"""Recordings as a side of a comparison: their sessions, with what they used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from collector.config.tree import Config
from collector.records.moved import EvaluatorScores
from collector.records.what_changed import SessionSide, failed_by_tool
from collector.service.recorded_traces import read_recordings
from evaluators.formulas.differences import facts
from evaluators.model import Trace

SessionKey = tuple[str, str]
"""(service, session id)."""


def recorded_side(
    config: Config,
    files: Sequence[Path],
    scores: Mapping[SessionKey, Mapping[str, EvaluatorScores]] | None = None,
) -> list[SessionSide]:
    """The sessions of the recordings. `scores`: what evaluators said of them.

    Raises:
        ConfigError: a file cannot be read.
    """
    sessions: dict[SessionKey, list[Trace]] = {}
    with read_recordings(config, files, lambda _: None) as recorded:
        for trace in recorded.closed.traces():
            if trace.is_turn:
                sessions.setdefault((trace.service, trace.session_id), []).append(trace)
    return [_session(traces, (scores or {}).get(key, {})) for key, traces in sessions.items()]


def _session(traces: Sequence[Trace], scores: Mapping[str, EvaluatorScores]) -> SessionSide:
    failed = failed_by_tool(call for trace in traces for call in trace.tool_calls)
    return SessionSide(
        facts=facts(
            versions=(each.agent_version for each in traces),
            models=(model for each in traces for model in each.models),
            users=(each.user_id for each in traces),
            attributes=(each.attributes for each in traces),
            tools=failed,
            questions=(each.input for each in traces),
        ),
        tools=failed,
        seconds=math.fsum(each.duration for each in traces),
        cost=_sum(each.cost_usd for each in traces),
        scores=scores,
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [each for each in amounts if each is not None]
    return math.fsum(known) if known else None
