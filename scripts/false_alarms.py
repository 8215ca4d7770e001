"""The table of false alarms: what evaluators say of recordings of healthy and of troubled agents.

`python -m scripts.false_alarms FOLDER`, where FOLDER/STACK/SCENARIO.otlp are recordings.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.offline.evaluation import ClosedSession, evaluate_recordings

HEALTHY = frozenset(
    {"session", "weather", "weather_stream", "plan", "twoparallel", "handoff", "slow"}
)
"""Scenarios in which the agent does its work well."""
TROUBLED = frozenset({"loop", "wrongargs", "llm_error", "killed"})
"""Scenarios in which it fails."""
LINES = (0.8, 0.5)
"""Below the first a session is no longer reliable, below the second it is in trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One final outcome of one recording."""

    stack: str
    scenario: str
    evaluator: str
    outcome: str
    reason: str | None
    score: float | None
    success: bool | None


def rows(folder: Path) -> list[Row]:
    """Every final outcome of the folder's recordings of traces, each recording scored by itself."""
    settings = Config(workers=0)
    plan = plan_from(settings)
    found: list[Row] = []
    for path in sorted(folder.glob("*/*.otlp")):
        if path.suffixes != [".otlp"]:
            continue
        signals: list[dict[str, Any]] = []

        def closed(session: ClosedSession, signals: list[dict[str, Any]] = signals) -> None:
            signals += map(msgspec.json.decode, session.signals)

        asyncio.run(evaluate_recordings(settings, plan, [path], lambda _path: None, closed))
        found += [
            Row(
                stack=path.parent.name,
                scenario=path.stem,
                evaluator=signal["evaluator"],
                outcome=signal["outcome"],
                reason=signal["reason"],
                score=signal["score"],
                success=signal["success"],
            )
            for signal in signals
        ]
    return found


def table(found: Sequence[Row]) -> str:
    """Two tables in Markdown: failures on healthy runs by evaluator, and agent_reliability by scenario."""
    return "\n".join((*_failures(found), "", *_reliability(found)))


def _failures(found: Sequence[Row]) -> Iterable[str]:
    yield "| evaluator | outcomes of healthy runs that pass or fail | failed |"
    yield "|---|---|---|"
    judged: defaultdict[str, list[bool]] = defaultdict(list)
    for row in found:
        if row.scenario in HEALTHY and row.success is not None:
            judged[row.evaluator].append(row.success)
    for name, successes in sorted(judged.items()):
        failed = successes.count(False)
        yield f"| `{name}` | {len(successes)} | {failed} ({failed / len(successes):.1%}) |"


def _reliability(found: Sequence[Row]) -> Iterable[str]:
    fair, bad = LINES
    yield f"| scenario | `agent_reliability` scored | below {fair} | below {bad} | not scored |"
    yield "|---|---|---|---|---|"
    by_scenario: defaultdict[str, list[float | None]] = defaultdict(list)
    for row in found:
        if row.evaluator == "agent_reliability":
            by_scenario[row.scenario].append(row.score)
    for scenario, scores in sorted(by_scenario.items()):
        values = [score for score in scores if score is not None]
        counts = [sum(value < line for value in values) for line in LINES]
        unscored = len(scores) - len(values)
        yield f"| {scenario} | {len(values)} | {counts[0]} | {counts[1]} | {unscored} |"


if __name__ == "__main__":
    sys.stdout.write(table(rows(Path(sys.argv[1]))) + "\n")
