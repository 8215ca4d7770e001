"""What scoring costs: a trace, a session's update, and a signal on its way to its record, the metrics and the file.

In calls of functions, where CPU time would say the same only on a quiet machine.
"""

import asyncio
import cProfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace as with_fields
from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import AgentWindow, Config
from collector.export.exporter import PrometheusExporter
from collector.log.port import SIGNALS, New, Record
from collector.reading.port import reader_settings
from collector.reading.worker import JobRunner
from collector.records.published_signals import PublishedSignals
from collector.records.sessions import session_key
from collector.records.signal_batch import made
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import TraceRecord
from collector.scoring.effects import PlacedTrace, WriteBatch
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.sinks.jsonl import JsonlSink
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.targets import Targets
from collector.watch.windows.window import MOST_WAITING
from evaluators.model import JSON, Session, ToolDefinition, Trace
from evaluators.plan import make_plan
from evaluators.run import SessionScorer, score_trace
from tests.support.bench_traces import read_traces
from tests.support.evaluating import OURS, a_turn
from tests.support.faulty_log import FaultyLog
from tests.support.scoring_fakes import summarised
from tests.support.signals import BASE, signal

pytestmark = pytest.mark.bench
Result = TypeVar("Result")
CONFIG = Config.model_validate({"workers": 0, "embedder": {"kind": "none"}})
START = 1_790_000_000.0
TRACES = 60
SCHEMA: JSON = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
    },
    "required": ["query"],
    "additionalProperties": False,
}
SEARCH = ToolDefinition(name="search", description="Searches", parameters=SCHEMA)


def calls(action: Callable[[], Result]) -> tuple[int, Result]:
    """Calls of functions that the action makes, the same on every machine; and what it returns."""
    profile = cProfile.Profile()
    result = profile.runcall(action)
    return sum(each.callcount for each in profile.getstats()), result


def test_a_trace_is_scored_in_a_bounded_number_of_calls() -> None:
    """Reached: 356 without tools' schemas, 1,700 with them; jsonschema takes 50 us to check the arguments of a call."""
    plan = plan_from(CONFIG)
    traces = read_traces(TRACES)
    declared = [replace(trace, tools_offered=(SEARCH,)) for trace in traces]

    def score(of: Sequence[Trace]) -> None:
        for trace in of:
            score_trace(plan, trace)

    score(declared[:1])  # the schema is checked once
    plain = calls(partial(score, traces[1:]))[0] / len(traces[1:])
    checked = calls(partial(score, declared[1:]))[0] / len(traces[1:])

    print(f"calls per trace: {plain:.0f}, with tools' schemas {checked:.0f}")
    assert plain < 360
    assert checked < 2_000


def update_ratio() -> float:
    """The time of a session's update in a window of 1000 traces / in one of 10."""
    return _update_time(1000) / _update_time(10)


def _update_time(n: int) -> float:
    window = [a_turn(f"t{i}", i, {"confidence": (i * 37 % 101) / 101}) for i in range(n)]
    scorer = SessionScorer(make_plan(OURS, {}, embedder=None))
    for turn in window:
        scorer.put(turn)
    session = Session(service="s", session_id="s", agent="a", turns=window)
    times: list[float] = []
    for repeat in range(30):
        started = time.perf_counter()
        for i in range(20):
            scorer.put(window[(repeat * 20 + i) % n])
            scorer.outcomes(session, closed=False)
        times.append(time.perf_counter() - started)
    return min(times)


def test_an_update_costs_the_same_in_a_long_session() -> None:
    assert update_ratio() <= 2


def scored_traces() -> list[SummarisedTrace]:
    """Of the bench's load."""
    runner = JobRunner(reader_settings(CONFIG))
    return [
        with_fields(
            summarised(TraceRecord(trace=trace, spans=(), revision=0, seen=START)),
            outcomes=runner.outcomes(trace),
        )
        for trace in read_traces(TRACES)
    ]


def published(found: Sequence[SummarisedTrace]) -> tuple[list[New], int, int]:
    """The records of all their signals; the calls in which the traces are placed, and those for the signals."""
    plan = plan_from(CONFIG)
    rules = Rules.of(plan, lambda: SessionScorer(plan))
    sessions = OpenSessions(partition=0, rules=rules, limits=CONFIG.windows.session)
    batch = WriteBatch(joined=True)
    placed = finished = 0
    for offset, trace in enumerate(found):
        key = session_key(trace.summary.service, trace.summary.session_id)
        taking = partial(sessions.take, trace, key=key, offset=offset, now=START + offset)
        count, task = calls(taking)
        assert isinstance(task, PlacedTrace)
        placed += count
        finished += calls(partial(_finish, sessions, task, batch))[0]
    return [each for each in batch.records if each.topic == SIGNALS], placed, finished


def _finish(sessions: OpenSessions, task: PlacedTrace, batch: WriteBatch) -> None:
    batch.add(sessions.finish(task, {}), partition=0)


async def read_back(made: Sequence[New]) -> list[Record]:
    """The records as a reader gets them."""
    log = FaultyLog()
    await log.write(made)
    return [each async for each in log.replay(SIGNALS, 0)]


def test_a_signal_takes_a_bounded_number_of_calls(tmp_path: Path) -> None:
    """Reached: 138 to place a trace; per signal 93 to the record, 80 to metrics, 6 to the file."""
    found = scored_traces()
    published(found)  # what is computed once is known now
    written, placed, finished = published(found)
    records = asyncio.run(read_back(written))
    exporter = PrometheusExporter(
        log=FaultyLog(),
        telemetry=Telemetry(CollectorRegistry()),
        windows=CONFIG.windows.agent,
        objectives=lambda _: 0.9,
        clock=lambda: START,
    )
    sink = JsonlSink(tmp_path / "signals.jsonl", max_size=1 << 30, keep=1)

    def to_metrics() -> None:
        for each in records:
            exporter._take(each)

    def to_file() -> None:
        signals = PublishedSignals()
        for each in records:
            signals.add(each)
        sink._deliver(signals)

    signals = sum(each.count for each in records)
    metrics, file = calls(to_metrics)[0] / signals, calls(to_file)[0] / signals
    asyncio.run(sink.close(1.0))

    print(f"calls per trace: placed {placed / TRACES:.1f}")
    print(f"per signal: desk {finished / signals:.1f}, metrics {metrics:.1f}, file {file:.1f}")
    assert placed / TRACES < 139
    assert finished / signals < 94
    assert metrics < 81
    assert file < 7


def test_a_signal_costs_the_same_in_a_full_window() -> None:
    limits = AgentWindow(sessions=50)
    targets = Targets(limits, lambda _: None)
    taken = count()

    def take() -> None:
        for _ in range(2 * MOST_WAITING):
            number = next(taken)
            at = BASE + number
            what = signal(f"s-{number}", None, evaluator="work_baseline", at=at)
            ready = made(what, first=True)
            names = (what.service, what.agent, what.evaluator)
            labels = targets.admit(*names, what.scope, at).labels
            place = targets.place(labels, what.service, what.evaluator)
            targets.take(place, Incoming(ready.subject, at), ready.header, 0, number)

    first, _ = calls(take)  # it settles once
    take()
    later, _ = calls(take)

    assert later < 1.2 * first
