"""What a signal costs from its trace's outcomes to its record, to the metrics and to the file: in calls of functions.

CPU time says the same only on a quiet machine, these counts are the same everywhere.
"""

import asyncio
import cProfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from collector.config.tree import AgentWindow
from collector.export.exporter import PrometheusExporter
from collector.log.port import SIGNALS, New, Record
from collector.records.signal_batch import made
from collector.records.trace_views import SummarisedTrace
from collector.scoring.effects import PlacedTrace
from collector.sinks.jsonl import JsonlSink
from collector.watch.windows.subject_view import SubjectView
from collector.watch.windows.targets import Targets
from collector.watch.windows.window import MOST_WAITING
from tests.bench.signal_path import Desk, new_exporter, published_signals, scored_traces
from tests.support.faulty_log import FaultyLog
from tests.support.signals import BASE, signal

pytestmark = pytest.mark.bench
TRACES = 60
PLACED, DESK, METRICS, FILE = 139, 94, 81, 7


async def read_back(made: Sequence[New]) -> list[Record]:
    """The records as a reader gets them."""
    log = FaultyLog()
    await log.write(made)
    return [each async for each in log.replay(SIGNALS, 0)]


def to_metrics(exporter: PrometheusExporter, records: Sequence[Record]) -> None:
    """The same signals in the metrics."""
    for each in records:
        exporter._take(each)


def to_file(sink: JsonlSink, records: Sequence[Record]) -> None:
    """The same signals in the file."""
    sink._deliver(published_signals(records))


def calls(action: Callable[[], object]) -> int:
    """Calls of functions that the action makes: a count that no other process on the machine changes."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(each.callcount for each in profile.getstats())


def published(found: Sequence[SummarisedTrace]) -> tuple[list[New], int, int]:
    """The records of all their signals; the calls in which the traces are placed, and those for the signals."""
    desk, tasks = Desk(), list[PlacedTrace]()
    placed = finished = 0
    for trace in found:
        placed += calls(partial(_place, desk, trace, tasks))
        finished += calls(partial(desk.finish, tasks.pop()))
    return desk.taken(), placed, finished


def _place(desk: Desk, trace: SummarisedTrace, tasks: list[PlacedTrace]) -> None:
    tasks.append(desk.place(trace))


def test_a_signal_takes_a_bounded_number_of_calls(tmp_path: Path) -> None:
    """Reached: 138 to place a trace; per signal 93 to the record, 80 to metrics, 6 to the file."""
    found = scored_traces(TRACES)
    published(found)  # what is computed once is known now

    written, placed, finished = published(found)
    records = asyncio.run(read_back(written))
    signals = sum(each.count for each in records)
    placed /= len(found)
    desk = finished / signals
    metrics = calls(partial(to_metrics, new_exporter(), records)) / signals
    sink = JsonlSink(tmp_path / "signals.jsonl", max_size=1 << 30, keep=1)
    file = calls(partial(to_file, sink, records)) / signals
    asyncio.run(sink.close(1.0))

    print(f"calls per trace: placed {placed:.1f}")
    print(f"calls per signal: desk {desk:.1f}, metrics {metrics:.1f}, file {file:.1f}")
    assert placed < PLACED
    assert desk < DESK
    assert metrics < METRICS
    assert file < FILE


def test_a_signal_costs_the_same_in_a_full_window() -> None:
    limits = AgentWindow(sessions=50)
    targets = Targets(limits, lambda _: None)
    taken = count()

    def take(sessions: int) -> None:
        for _ in range(sessions):
            number = next(taken)
            at = BASE + number
            what = signal(f"s-{number}", None, evaluator="work_baseline", at=at)
            ready = made(what, first=True)
            names = (what.service, what.agent, what.evaluator)
            labels = targets.admit(*names, what.scope, at).labels
            place = targets.place(labels, what.service, what.evaluator)
            targets.take(place, SubjectView(ready.subject, at), ready.header, 0, number)

    first = calls(partial(take, 2 * MOST_WAITING))  # it settles once
    take(2 * MOST_WAITING)
    later = calls(partial(take, 2 * MOST_WAITING))

    assert later < 1.2 * first
