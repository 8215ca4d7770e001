"""Assembly and scoring as configured: made the same way by the service and offline."""

from __future__ import annotations

from collector import roles
from collector.assembly.room import Assembler
from collector.config import Config
from collector.log import Log
from collector.pool import Workers
from collector.scoring.ports import Rules
from collector.scoring.room import Scorer
from collector.telemetry import Telemetry
from evaluators.run import Plan, SessionScorer, needs_history


def assembler(config: Config, log: Log, workers: Workers, telemetry: Telemetry) -> Assembler:
    """The room that makes traces of spans."""
    return Assembler(
        log=log,
        workers=workers,
        windows=config.windows,
        telemetry=telemetry,
        group=roles.ASSEMBLY,
    )


def scorer(config: Config, plan: Plan, log: Log, workers: Workers, telemetry: Telemetry) -> Scorer:
    """The room that makes signals of traces."""
    return Scorer(
        log=log,
        workers=workers,
        rules=Rules.of(plan, lambda: SessionScorer(plan), needs_history(plan)),
        windows=config.windows,
        telemetry=telemetry,
        redact=config.redaction.content == "drop",
        group=roles.SCORING,
    )
