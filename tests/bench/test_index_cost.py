"""What the index costs: CPU per trace beside one encoding of the same records, and bytes per session."""

import gc
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pytest

from collector.api.families import ApiFamilies
from collector.api.index import HIGH, Index
from collector.api.query import Query
from collector.base.telemetry import Telemetry
from collector.log.port import SIGNALS, Position, Record
from collector.records.signal import Signal, encode_signal
from collector.records.signal_batch import batch_records, made
from collector.records.traces import TraceRecord, decode_traces
from evaluators.model import Trace
from tests.support import api_records as make

pytestmark = pytest.mark.bench
LIMIT = 512 << 20
BATCH = 64
TRACE = (
    "argument_correctness",
    "coherence",
    "confidence",
    "loop_detection",
    "plan_quality",
    "runaway",
    "step_efficiency",
    "task_completion",
    "tool_correctness",
)
SESSION = ("agent_consistency", "agent_reliability", "cost", "latency", "repeated_calls")
WORDS = [f"{random.Random(seed).getrandbits(40):x}"[: 2 + seed % 8] for seed in range(2_000)]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records of one-trace sessions, as scoring writes them on a log of one process."""

    traces: list[Record]
    signals: list[Record]
    made_signals: list[Signal]
    """The signals in them."""


def recorded(count: int) -> Recorded:
    draw = random.Random(5)
    traces: list[bytes] = []
    signals: list[Record] = []
    made_signals: list[Signal] = []
    offset = -1

    def words(count: int) -> str:
        return " ".join(draw.choices(WORDS, k=count))

    def scored(of: Trace, evaluator: str) -> Signal:
        metadata = {"steps": draw.randrange(20), "value": draw.random(), "success": True}
        return make.signal(
            of,
            evaluator,
            id=f"{draw.getrandbits(128):032x}",
            score=round(draw.random(), 4),
            explanation=words(8),
            metadata=metadata,
        )

    for number in range(count):
        of = make.trace(
            draw.getrandbits(120),
            session_id=f"session-{draw.getrandbits(64):016x}",
            input=words(40),
            output=words(100),
            start_time_unix_nano=int((make.START + number) * 1e9),
            end_time_unix_nano=int((make.START + number + 3) * 1e9),
        )
        traces.append(make.trace_value(of))
        own = [scored(of, name) for name in TRACE]
        own += [
            make.session_signal(of, name, draw.random(), explanation=words(6)) for name in SESSION
        ]
        (new,) = batch_records([made(each) for each in own])
        assert isinstance(new.value, bytes)
        offset += new.count
        position = Position(SIGNALS, 0, offset)
        signals.append(
            Record(position=position, key=b"", value=new.value, time=make.START, count=new.count)
        )
        made_signals += own
    return Recorded(make.trace_records(*traces), signals, made_signals)


def index_in(folder: str) -> Index:
    return Index(
        Path(folder),
        size=LIMIT,
        max_traces=1000,
        content=True,
        families=ApiFamilies(Telemetry()),
    )


def fill(index: Index, of: Recorded) -> None:
    for at in range(0, len(of.traces), BATCH):
        index.take_traces(of.traces[at : at + BATCH])
    for at in range(0, len(of.signals), BATCH):
        index.take_signals(of.signals[at : at + BATCH])


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    began = time.thread_time()
    work()
    return time.thread_time() - began


def index_ratio() -> float:
    """CPU of the index for these records / CPU of encoding each once."""
    of = recorded(256)
    whole = [decode_traces(each.value) for each in of.traces]
    traces = [each for each in whole if isinstance(each, TraceRecord)]
    taken = encoded = float("inf")

    def encode() -> object:
        signals = [encode_signal(each) for each in of.made_signals]
        return signals, [msgspec.msgpack.encode(each) for each in traces]

    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            index = index_in(folder)
            taken = min(taken, cpu(partial(fill, index, of)))
            index.close()
        encoded = min(encoded, cpu(encode))
    return taken / encoded


def sessions_that_fit() -> float:
    """How many one-trace sessions an index of 512 MiB holds, from the bytes that 1,500 of them add to an empty one."""
    count = 1_500
    with tempfile.TemporaryDirectory() as folder:
        index = index_in(folder)
        empty = index.file.used()
        fill(index, recorded(count))
        assert len(Query(index).sessions(limit=count).items) == count
        used, limit = index.file.used() - empty, index.file.limit
        index.close()
    return (HIGH * limit - empty) / (used / count)


def test_the_index_costs_a_few_encodings_of_its_records() -> None:
    """What others do on the machine adds more to the index, which asks the disk: one of three looks has to hold."""
    ratios: list[float] = []
    while len(ratios) < 3 and not [each for each in ratios if each <= 8.5]:
        ratios.append(index_ratio())

    assert min(ratios) <= 8.5


def test_the_index_holds_a_hundred_thousand_sessions() -> None:
    # How full SQLite's pages are depends on the order of sets: a thousandth more or less from run to run.
    assert round(sessions_that_fit(), -3) >= 100_000
