"""The tables of false alarms in docs/evidence.md: what evaluators say of recordings of healthy and of troubled agents.

`python -m scripts.research.false_alarms [FOLDER ...]`, where FOLDER/STACK/SCENARIO.otlp are recordings of spans and
FOLDER/STACK/SCENARIO.logs.otlp of log records; without it, those of the tests.
"""

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service.evaluation import ClosedSession, evaluate_recordings

HEALTHY = frozenset(
    {
        "handoff",
        "mcp",
        "parallel",
        "parallel_bash",
        "plan",
        "rejected",
        "session",
        "session_resume",
        "slow",
        "subagent",
        "twoparallel",
        "weather",
        "weather_stream",
    }
)
"""Scenarios in which the agent does its work well, also where a call of its is refused."""
TROUBLED = frozenset(
    {"loop", "loop_resume", "wrongargs", "llm_error", "model_error", "bad_request", "killed"}
)
"""Scenarios in which it fails."""
LINES = (0.8, 0.5)
"""Below the first a session is no longer reliable, below the second it is in trouble."""
RECOVERED = "retry"
"""The scenario in which a tool call fails and then succeeds."""
_DATA = Path(__file__).parents[2] / "tests" / "data"
RECORDINGS = (_DATA / "captures", _DATA / "captures_logs")


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


def rows(*folders: Path) -> list[Row]:
    """Every final outcome of the folders' recordings, each recording scored by itself."""
    settings = Config(workers=0)
    plan = plan_from(settings)
    found: list[Row] = []
    for (stack, scenario), paths in _recordings(folders).items():
        signals: list[dict[str, Any]] = []

        def closed(session: ClosedSession, signals: list[dict[str, Any]] = signals) -> None:
            signals += map(msgspec.json.decode, session.signals)

        asyncio.run(evaluate_recordings(settings, plan, paths, lambda _path: None, closed))
        found += [
            Row(
                stack=stack,
                scenario=scenario,
                evaluator=signal["evaluator"],
                outcome=signal["outcome"],
                reason=signal["reason"],
                score=signal["score"],
                success=signal["success"],
            )
            for signal in signals
        ]
    return found


def _recordings(folders: Iterable[Path]) -> dict[tuple[str, str], list[Path]]:
    """The files of each recording by its stack and scenario: its spans, its log records, or both."""
    found: dict[tuple[str, str], list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/*.otlp")):
            if path.suffixes in ([".otlp"], [".logs", ".otlp"]):
                key = path.parent.name, path.name.partition(".")[0]
                found.setdefault(key, []).append(path)
    return found


def table(found: Sequence[Row]) -> str:
    """Three tables in Markdown: failures on healthy runs, agent_reliability by scenario, and by stack in trouble."""
    return "\n".join((*_failures(found), "", *_reliability(found), "", *_troubled(found)))


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
    yield f"| scenario | | `agent_reliability` scored | below {fair} | below {bad} | not scored |"
    yield "|---|---|---|---|---|---|"
    for scenario in sorted({row.scenario for row in found}):
        rows_of = [row for row in _sessions(found) if row.scenario == scenario]
        values = [row.score for row in rows_of if row.score is not None]
        counts = [sum(value < line for value in values) for line in LINES]
        why = Counter(row.reason for row in rows_of if row.score is None)
        unscored = ", ".join(
            f"{count} `{reason}`" for reason, count in sorted(why.items(), key=str)
        )
        kind = "healthy" if scenario in HEALTHY else "trouble" if scenario in TROUBLED else ""
        yield f"| {scenario} | {kind} | {len(values)} | {counts[0]} | {counts[1]} | {unscored} |"


def _troubled(found: Sequence[Row]) -> Iterable[str]:
    there = {row.scenario for row in found}
    scenarios = [each for each in (*sorted(TROUBLED), RECOVERED) if each in there]
    yield f"| stack | {' | '.join(scenarios)} |"
    yield f"|---|{'---|' * len(scenarios)}"
    shown = [row for row in _sessions(found) if row.scenario in scenarios and not _is_empty(row)]
    for stack in sorted({row.stack for row in shown}):
        cells = (
            sorted(
                {
                    f"`{row.reason}`" if row.score is None else f"{row.score:.2f}"
                    for row in shown
                    if (row.stack, row.scenario) == (stack, scenario)
                }
            )
            for scenario in scenarios
        )
        yield f"| {stack} | {' | '.join(', '.join(cell) for cell in cells)} |"


def _sessions(found: Iterable[Row]) -> list[Row]:
    return [row for row in found if row.evaluator == "agent_reliability"]


def _is_empty(row: Row) -> bool:
    """Whether the session held no turn: the traces that a library makes about itself."""
    return row.reason == "nothing_to_judge"


if __name__ == "__main__":
    folders = map(Path, sys.argv[1:]) if len(sys.argv) > 1 else RECORDINGS
    sys.stdout.write(table(rows(*folders)) + "\n")
