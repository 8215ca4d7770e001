"""CPU of a signal from its trace's outcomes to three sinks, in one process: `python -m tests.bench.signal_path`.

    outcomes -> desk (signals, session's outcomes, record) -> log on disk -> JSONL file, index, metrics

Shown per signal, and over what msgspec takes to encode the same signals, measured between the rounds. CPU of all
threads of this process, kernel included; scoring the traces and placing them in their sessions is left out.
"""

import asyncio
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import process_time

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.export.exporter import PrometheusExporter
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SIGNALS, Batch, New, Record
from collector.reading.port import reader_settings
from collector.reading.worker import JobRunner
from collector.records.published_signals import PublishedSignals
from collector.records.sessions import session_key
from collector.records.signal import Signal, decode_signal
from collector.records.signal_batch import signals_in
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import TraceRecord
from collector.scoring.effects import PlacedTrace, WriteBatch
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.sinks.jsonl import JsonlSink
from evaluators.run import SessionScorer
from tests.support.bench_traces import read_traces
from tests.support.faulty_log import FaultyLog
from tests.support.scoring_fakes import summarised

CONFIG = Config.model_validate({"workers": 0, "embedder": {"kind": "none"}})
START = 1_790_000_000.0
TRACES, AT_ONCE, ROUNDS = 240, 32, 5
MARK = 15.0
_encode = msgspec.json.Encoder().encode


def scored_traces(count: int) -> list[SummarisedTrace]:
    """The load of the service's own bench, read and scored."""
    runner = JobRunner(reader_settings(CONFIG))
    read = read_traces(count)
    records = [
        summarised(TraceRecord(trace=trace, spans=(), revision=0, seen=START)) for trace in read
    ]
    return [
        replace(each, outcomes=runner.outcomes(trace))
        for each, trace in zip(records, read, strict=True)
    ]


class Desk:
    """The sessions of the traces, and the batch that they fill."""

    def __init__(self, *, joined: bool = True) -> None:
        plan = plan_from(CONFIG)
        rules = Rules.of(plan, lambda: SessionScorer(plan))
        limits = CONFIG.windows.session
        self.sessions = OpenSessions(partition=0, rules=rules, limits=limits)
        self.batch = WriteBatch(joined=joined)
        self._offset = 0

    def place(self, trace: SummarisedTrace) -> PlacedTrace:
        """The trace in its session, which takes no other one until it is finished."""
        key = session_key(trace.summary.service, trace.summary.session_id)
        now = START + self._offset
        task = self.sessions.take(trace, key=key, offset=self._offset, now=now)
        assert isinstance(task, PlacedTrace)
        self._offset += 1
        return task

    def finish(self, task: PlacedTrace) -> None:
        """Add what it publishes to the batch."""
        self.batch.add(self.sessions.finish(task, {}), partition=0)

    def taken(self) -> list[New]:
        """The signals of the batch, which is empty then, as records of the log."""
        made = [each for each in self.batch.records if each.topic == SIGNALS]
        self.batch.clear()
        return made


def new_exporter() -> PrometheusExporter:
    """The metrics, over a log of their own."""
    return PrometheusExporter(
        log=FaultyLog(),
        telemetry=Telemetry(CollectorRegistry()),
        windows=CONFIG.windows.agent,
        objectives=lambda _: 0.9,
        clock=lambda: START,
    )


@dataclass(slots=True)
class Spent:
    """CPU seconds by stage, and what for."""

    signals: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def on(self, stage: str) -> Generator[None]:
        """Count the block to this stage."""
        begin = process_time()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + process_time() - begin

    @property
    def micros(self) -> Mapping[str, float]:
        """Microseconds per signal."""
        return {stage: 1e6 * each / self.signals for stage, each in self.seconds.items()}

    @property
    def ratio(self) -> float:
        """Of all stages over the encoding."""
        encode = self.seconds["encode"]
        return (sum(self.seconds.values()) - encode) / encode


async def measured(traces: Sequence[SummarisedTrace], folder: Path) -> Spent:
    """One round over these traces, in a fresh log and fresh sinks."""
    log = await DiskLog.open(
        folder / "log",
        max_size=256 << 20,
        clock=lambda: START,
        telemetry=Telemetry(),
        groups={SIGNALS: frozenset({"bench"})},
    )
    families = ApiFamilies(Telemetry())
    index = Index(folder / "index", size=64 << 20, max_traces=1000, content=True, families=families)
    file = JsonlSink(folder / "signals.jsonl", max_size=1 << 30, keep=1)
    exporter, desk, spent = new_exporter(), Desk(), Spent()
    reader = log.read("bench", SIGNALS)
    await reader.poll()
    for at in range(0, len(traces), AT_ONCE):
        for trace in traces[at : at + AT_ONCE]:
            task = desk.place(trace)
            with spent.on("desk"):
                desk.finish(task)
        made = desk.taken()
        with spent.on("log"):
            await log.write(made)
            records = (await reader.poll(max_records=10_000)).records
        with spent.on("jsonl"):
            await file.deliver(published_signals(records))
        with spent.on("index"):
            index.take_signals(records)
        with spent.on("metrics"):
            await exporter.take(Batch(records=records))
        signals = _decoded(records)
        spent.signals += len(signals)
        with spent.on("encode"):
            for each in signals:
                _encode(each)
    index.close()
    await file.close(1.0)
    await log.close()
    return spent


def published_signals(records: Sequence[Record]) -> PublishedSignals:
    """As a sink gets them."""
    found = PublishedSignals()
    for each in records:
        found.add(each)
    return found


def _decoded(records: Sequence[Record]) -> list[Signal]:
    return [decode_signal(each.json) for record in records for each in signals_in(record)]


def measure(traces: int = TRACES, rounds: int = ROUNDS) -> list[Spent]:
    """Several rounds over the same traces; the first, in which much is computed once, is left out."""
    found = scored_traces(traces)
    spent: list[Spent] = []
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            spent.append(asyncio.run(measured(found, Path(folder))))
    return spent[1:]


def signal_ratio(rounds: Sequence[Spent]) -> float:
    """CPU from the outcome to three sinks over that of encoding: the median of the rounds."""
    return median(each.ratio for each in rounds)


def main() -> None:
    """Print the table."""
    rounds = measure()
    for stage in rounds[0].micros:
        print(f"{stage:10} {median(each.micros[stage] for each in rounds):8.2f} us per signal")
    print(f"outcome to three sinks / encode: {signal_ratio(rounds):.1f} (mark {MARK:.0f})")


if __name__ == "__main__":
    main()
