"""What is printed of all sessions together: the aggregates of scores, of latency, cost and tokens, and of task runs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from collector.records.trace_views import TraceUsage
from collector.records.traces import RunRecord
from collector.service.evaluation import ClosedSession
from evaluators.formulas import distribution
from evaluators.formulas.task_runs import Run, task_passing


class _Scored(msgspec.Struct, frozen=True):
    evaluator: str
    outcome: str
    score: float | None


_scored = msgspec.json.Decoder(_Scored)


class Aggregates:
    def __init__(self) -> None:
        self.runs: list[RunRecord] = []  # sessions that were runs of a task
        self._scores: dict[str, list[float]] = defaultdict(list)
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, session: ClosedSession) -> None:
        if session.run is not None:
            self.runs.append(session.run)
        for signal in map(_scored.decode, session.signals):
            self._counts[signal.evaluator][signal.outcome] += 1
            if signal.score is not None:
                self._scores[signal.evaluator].append(signal.score)

    def over(self, traces: Sequence[TraceUsage]) -> dict[str, Any]:
        return {
            "traces": len(traces),
            "evaluators": {
                name: {
                    "outcomes": dict(counts),
                    "scores": distribution.aggregate(scores)
                    if (scores := self._scores.get(name))
                    else None,
                }
                for name, counts in sorted(self._counts.items())
            },
            "latency": distribution.latency([each.duration * 1000 for each in traces]),
            "cost": distribution.cost([e.cost_usd for e in traces if e.cost_usd is not None]),
            "token_usage": distribution.token_usage(
                [
                    (each.tokens.input or 0, each.tokens.output or 0)
                    for each in traces
                    if each.tokens.input is not None or each.tokens.output is not None
                ]
            ),
        }


def passing(runs: Sequence[RunRecord], *, window: int) -> dict[str, Any]:
    """pass@k and pass^k by service, agent and k; recordings have one log time, so the spans' own tells the newest."""
    agents: defaultdict[tuple[str, str], defaultdict[str, list[Run]]]
    agents = defaultdict(lambda: defaultdict(list))
    for each in runs:
        if each.success is not None:
            run = Run(each.session_id, each.named_at / 1e9, each.success)
            agents[each.service, each.agent][each.task_id].append(run)
    return {
        "runs": len(runs),
        "without_success": sum(each.success is None for each in runs),
        "passing": [
            {"service": service, "agent": agent, **asdict(each)}
            for (service, agent), tasks in sorted(agents.items())
            for each in task_passing(tasks.values(), window=window)
        ],
    }
