"""Assembly and scoring as configured: made the same way by the service and offline."""

from __future__ import annotations

from collector.assembly.assembler import Assembler
from collector.clock import Clock
from collector.config.tree import Config
from collector.judging.budget import Budget
from collector.judging.judging_room import JudgingRoom
from collector.judging.process import JudgeProcess
from collector.judging.sample import is_sampled
from collector.log.port import Log
from collector.pool.port import Workers
from collector.scoring.rules import JudgedRules, Rules
from collector.scoring.scorer import Scorer
from collector.telemetry import Telemetry
from evaluators.run import Plan, SessionScorer, needs_history

ASSEMBLY, SCORING, JUDGING = "assembly", "scoring", "judging"
"""The group of each room."""


def assembler(config: Config, log: Log, workers: Workers, telemetry: Telemetry) -> Assembler:
    """The room that makes traces of spans."""
    return Assembler(
        log=log,
        workers=workers,
        windows=config.windows,
        telemetry=telemetry,
        group=ASSEMBLY,
    )


def scorer(config: Config, plan: Plan, log: Log, workers: Workers, telemetry: Telemetry) -> Scorer:
    """The room that makes signals of traces."""
    return Scorer(
        log=log,
        workers=workers,
        rules=Rules.of(
            plan,
            lambda: SessionScorer(plan),
            needs_history(plan),
            judged_rules(config, plan),
            task_evaluator=config.tasks.evaluator,
        ),
        windows=config.windows,
        telemetry=telemetry,
        redact=config.redaction.content == "drop",
        group=SCORING,
    )


def judged_rules(config: Config, plan: Plan) -> JudgedRules:
    """The judged evaluators as scoring waits for their verdicts."""
    judge = config.judge
    return JudgedRules(
        trace=tuple(each for each in plan.judged if each.spec.scope == "trace"),
        session=tuple(each for each in plan.judged if each.spec.scope == "session"),
        max_lag=judge.max_lag,
        samples=lambda key: is_sampled(key, judge.sample),
        probability=judge.sample,
    )


def judge_room(
    config: Config,
    plan: Plan,
    log: Log,
    telemetry: Telemetry,
    clock: Clock,
    *,
    log_clock: Clock | None = None,
    only: tuple[str, ...] | None = None,
) -> JudgingRoom:
    """The room that makes verdicts of traces; its process is started for the first of them.

    `log_clock` is the log's, where it is another: a subject's age is a matter of log time.
    """
    limits = config.judge.budget
    budget = Budget(usd_per_day=limits.usd_per_day, calls_per_minute=limits.calls_per_minute)
    process = JudgeProcess(config, budget=budget, telemetry=telemetry, clock=clock, only=only)
    return JudgingRoom(
        log=log,
        judges=process,
        judged=plan.judged,
        config=config.judge,
        budget=budget,
        telemetry=telemetry,
        clock=log_clock or clock,
        group=JUDGING,
        session_age=config.windows.session.max_age,
    )
