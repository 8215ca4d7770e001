"""Signals in records of many show and deliver what they do in records of their own; after a crash, too."""

import asyncio
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.query import Query
from collector.base.telemetry import Telemetry
from collector.export.exporter import EVERY
from collector.log.port import SIGNALS, WINDOWS, New, Record
from collector.records.signal import Signal
from collector.records.signal_batch import NewSignal, made, signal_records
from collector.sinks.jsonl import JsonlSink
from tests.support.examples import examples
from tests.support.faulty_log import FaultyLog
from tests.support.publisher import Publisher
from tests.support.signals import BASE, covered, failed, signal, skipped
from tests.support.sink_contract import committed, count, delivering

EVALUATORS = ("tool_correctness", "groundedness", "runaway")


@dataclass(frozen=True)
class Step:
    """What one step of a session publishes."""

    session: int
    traces: tuple[int, ...]
    score: float
    kind: str
    final: bool
    waits: float
    """Seconds of log time before it."""


steps = st.lists(
    st.builds(
        Step,
        st.integers(0, 2),
        st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple),
        st.floats(0, 1),
        st.sampled_from(["scored", "failed", "skipped", "unseen"]),
        st.booleans(),
        st.sampled_from([0.0, 1.0, EVERY + 1]),
    ),
    min_size=1,
    max_size=8,
)


def signals_of(step: Step, at: float) -> list[Signal]:
    name = f"s-{step.session}"
    found: list[Signal] = []
    for number in step.traces:
        trace = f"{name}-{number}"
        for evaluator in EVALUATORS:
            make = failed if step.kind == "failed" and evaluator == "groundedness" else signal
            fields = {} if make is failed else {"score": step.score}
            found.append(make(name, trace, at=at, evaluator=evaluator, final=step.final, **fields))
    session = (
        skipped(name, None, at=at, reason="low_coverage", coverage=covered(5, 1), final=step.final)
        if step.kind == "unseen"
        else signal(name, None, at=at, score=step.score, final=step.final, revision=int(at - BASE))
    )
    return [*found, session]


def records_of(signals: Iterable[NewSignal], *, joined: bool) -> list[New]:
    return [
        record
        for _, own in groupby(signals, key=lambda each: each.subject.session_id)
        for record in signal_records([*own], joined=joined)
    ]


async def published(script: Sequence[Step], *, joined: int, killed: int) -> Publisher:
    """The exporter after each step, killed before the step of this number; signals are joined from step `joined` on."""
    publisher = Publisher()
    for number, step in enumerate(script):
        publisher.log.clock.now += step.waits
        signals = [made(each, first=each.final) for each in signals_of(step, BASE + number)]
        await publisher.log.write(records_of(signals, joined=number >= joined))
        if number == killed:
            publisher = publisher.successor()
        await publisher.step()
    publisher.log.clock.now += EVERY
    await publisher.step()
    return publisher


def stored(log: FaultyLog) -> dict[bytes, bytes]:
    return {each.key: each.value for each in log.stored(WINDOWS)}


@settings(max_examples=examples(60), deadline=None)
@given(script=steps, killed=st.integers(0, 8), updated=st.integers(0, 4))
def test_the_metrics_are_the_same(script: list[Step], killed: int, updated: int) -> None:
    """Also behind the records that an earlier version left."""
    one = asyncio.run(published(script, joined=len(script), killed=killed))
    other = asyncio.run(published(script, joined=updated, killed=killed))

    assert stored(one.log) == stored(other.log)
    assert _exposed(one) == _exposed(other)


@settings(max_examples=examples(40), deadline=None)
@given(script=steps)
def test_the_index_is_the_same(script: list[Step]) -> None:
    assert asyncio.run(_indexed(script, joined=False)) == asyncio.run(_indexed(script, joined=True))


@settings(max_examples=examples(25), deadline=None)
@given(script=steps)
def test_the_file_is_the_same_and_every_signal_is_counted(script: list[Step]) -> None:
    alone, counted = asyncio.run(_delivered(script, joined=False))
    together, counted_together = asyncio.run(_delivered(script, joined=True))
    signals = sum(len(signals_of(each, BASE)) for each in script)

    assert alone == together
    assert counted == counted_together == signals


async def _delivered(script: Sequence[Step], *, joined: bool) -> tuple[bytes, float]:
    log = FaultyLog()
    for number, step in enumerate(script):
        signals = [made(each) for each in signals_of(step, BASE + number)]
        await log.write(records_of(signals, joined=joined))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "signals.jsonl"
        async with delivering(log, JsonlSink(path, max_size=1 << 30, keep=1)) as telemetry:
            await committed(log, log.end_offset(SIGNALS))
        return path.read_bytes(), count(telemetry, "acked")


async def _indexed(script: Sequence[Step], *, joined: bool) -> tuple[object, ...]:
    log = FaultyLog()
    for number, step in enumerate(script):
        signals = [made(each) for each in signals_of(step, BASE + number)]
        await log.write(records_of(signals, joined=joined))
    read: list[Record] = log.stored(SIGNALS)
    with tempfile.TemporaryDirectory() as folder:
        families = ApiFamilies(Telemetry())
        index = Index(Path(folder), size=4 << 20, max_traces=1000, content=True, families=families)
        taken = index.take_signals(read)
        query = Query(index)
        shown = query.signals(limit=100).items, query.sessions(limit=100).items
        index.close()
    return taken.signals, *shown


def _exposed(publisher: Publisher) -> list[str]:
    """All samples but the times at which counters were made."""
    text = generate_latest(publisher.telemetry.registry).decode()
    return [line for line in text.splitlines() if "_created" not in line]
