"""What a signal costs from its trace's outcomes to its record, and to the metrics: in calls of functions.

CPU time says the same only on a quiet machine, these counts are the same everywhere.
"""

from __future__ import annotations

import asyncio
import cProfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

import pytest
from prometheus_client import CollectorRegistry

from collector.config.plan import plan_from
from collector.config.tree import AgentWindow, Config
from collector.log.port import SIGNALS, New, Position, Record
from collector.otlp.split import split_by_trace
from collector.pool.port import ScoreJob
from collector.pool.worker import JobRunner
from collector.records.sessions import session_key
from collector.records.traces import TraceRecord
from collector.scoring.effects import Task, WriteBatch
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.signals.prometheus.exporter import PrometheusExporter
from collector.signals.prometheus.targets import Targets
from collector.telemetry import Telemetry
from evaluators.dialects.read import read_trace
from evaluators.model import Outcome, Trace
from evaluators.resources import WINDOW
from evaluators.run import SessionScorer
from tests.bench.load import requests
from tests.support.faulty_log import FaultyLog
from tests.support.signals import BASE, signal

pytestmark = pytest.mark.bench
CONFIG = Config.model_validate({"workers": 0, "embedder": {"kind": "none"}})
TRACES = 60
DESK, METRICS = 225, 136
START = 1_790_000_000.0


def scored_traces() -> list[tuple[Trace, tuple[Outcome, ...]]]:
    """The load of the service's own bench, read and scored."""
    pieces: dict[str, list[bytes]] = {}
    for each in requests(TRACES, 64):
        for piece in split_by_trace(each.body, max_item=1 << 22, strict=False).pieces:
            pieces.setdefault(piece.key.hex(), []).append(piece.value)
    runner = JobRunner(CONFIG)
    read = [read_trace(each, trace_id=id_, closed="root_ended") for id_, each in pieces.items()]
    return [(trace, runner.score(ScoreJob(trace=trace))) for trace in read]


def to_records(found: Sequence[tuple[Trace, tuple[Outcome, ...]]]) -> list[New]:
    """The signals of traces and of their running sessions, as records of the log."""
    plan = plan_from(CONFIG)
    rules = Rules.of(plan, lambda: SessionScorer(plan), WINDOW)
    sessions = OpenSessions(partition=0, rules=rules, limits=CONFIG.windows.session)
    batch = WriteBatch()
    for offset, (trace, outcomes) in enumerate(found):
        record = TraceRecord(trace=trace, spans=(), revision=0, seen=START)
        key = session_key(trace.service, trace.session_id)
        task = sessions.take(record, key=key, offset=offset, now=START + offset)
        assert isinstance(task, Task)
        batch.add(sessions.finish(task, outcomes, ()), partition=0)
    return [each for each in batch.records if each.topic == SIGNALS]


async def read_back(made: Sequence[New]) -> list[Record]:
    """The records as a reader gets them."""
    log = FaultyLog()
    await log.write(made)
    return [each async for each in log.replay(SIGNALS, 0)]


def to_metrics(exporter: PrometheusExporter, records: Sequence[Record]) -> None:
    """The same signals in the metrics."""
    for each in records:
        exporter._take(each)


def new_exporter() -> PrometheusExporter:
    return PrometheusExporter(
        log=FaultyLog(),
        telemetry=Telemetry(CollectorRegistry()),
        windows=CONFIG.windows.agent,
        objectives=lambda _: 0.9,
        clock=lambda: START,
    )


def calls(action: Callable[[], object]) -> int:
    """Calls of functions that the action makes: a count that no other process on the machine changes."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(each.callcount for each in profile.getstats())


def test_a_signal_takes_a_bounded_number_of_calls() -> None:
    """Reached: 204 from a trace's outcomes to the record, 130 to the metrics; before, 248 and 139."""
    found = scored_traces()
    records = asyncio.run(read_back(to_records(found)))
    to_records(found)  # what is computed once is known now

    desk = calls(partial(to_records, found)) / len(records)
    metrics = calls(partial(to_metrics, new_exporter(), records)) / len(records)

    print(f"calls per signal: desk {desk:.1f}, metrics {metrics:.1f}")
    assert desk < DESK
    assert metrics < METRICS


def test_a_signal_costs_the_same_in_a_full_window() -> None:
    limits = AgentWindow(sessions=50)
    targets = Targets(limits, lambda _: None)
    taken = count()

    def take(sessions: int) -> None:
        for _ in range(sessions):
            number = next(taken)
            at = BASE + number
            made = signal(f"s-{number}", None, evaluator="work_baseline", at=at)
            labels = targets.admit(made, at).labels
            targets.take(made, labels, Position(SIGNALS, 0, number), at, first=True)

    first = calls(partial(take, 40))
    take(200)
    later = calls(partial(take, 40))

    assert later < 1.2 * first
