"""Any sequence of requests, pauses, restarts and damaged records: every trace is scored, every signal is valid."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from collector.base.errors import Undecodable
from collector.config.tree import AgentWindow
from collector.log.port import CLOSINGS, SESSIONS, SIGNALS, SPANS, TRACES, New, Position, Record
from collector.records.closings import decode_mark
from collector.records.sessions import decode_sessions, session_key, split_session_key
from collector.records.signal import decode_signal
from collector.records.signal_batch import signals_in
from collector.records.traces import decode_traces
from collector.watch.task_runs import TaskRuns
from collector.watch.windows.targets import Targets
from evaluators.dialects.content.names import clean
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz, corpus, seed
from tests.fuzz.pipeline import Pipeline, check_signals
from tests.support.mutation import mutated, torn
from tests.support.state_tables import give_back, state_key

pytestmark = pytest.mark.timeout(7200)

PAUSES = st.sampled_from([0.5, 7.0, 400.0, 4000.0, 100_000.0])
STEPS = st.lists(
    st.tuples(st.just("send"), SEEDS)
    | st.tuples(st.just("again"), SEEDS)
    | st.tuples(st.just("pause"), PAUSES)
    | st.tuples(st.just("walk"), st.none()),
    min_size=1,
    max_size=12,
)
DAMAGED = (SPANS, TRACES, SESSIONS, CLOSINGS)


def read_signals(value: bytes) -> object:
    return signals_in(
        Record(position=Position(SIGNALS, 0, 8), key=b"", value=value, time=0, count=9)
    )


def read_windows(value: bytes) -> None:
    *_, windows = Targets(AgentWindow(), lambda _: None).tables
    for table, key in (
        (windows, state_key("window", ("bot", "planner", "agent_reliability", "session"))),
        (TaskRuns(window=5).table, state_key("task", ("bot", "planner", "t"))),
    ):
        give_back(table, [New(topic="windows", key=key, value=value)])


DECODERS: dict[str, tuple[Callable[[bytes], object], ...]] = {
    TRACES: (decode_traces,),
    SESSIONS: (decode_sessions,),
    CLOSINGS: (decode_mark,),
    SIGNALS: (decode_signal, read_signals),
    "windows": (read_windows,),
}


def check_pipeline(requests: list[bytes], steps: list[tuple[str, Any]]) -> Pipeline:
    """What was accepted is scored, but for pieces of other traces' turns; nothing is passed over."""
    pipeline = Pipeline()
    asyncio.run(_run(pipeline, requests, steps))
    traces = {each["trace_id"] for each in check_signals(pipeline.signals)} - {None}
    sent = {each.key.hex() for each in pipeline.log.history(SPANS)}
    assert traces == sent - pipeline.pieces
    assert pipeline.passed_over == 0
    return pipeline


async def _run(pipeline: Pipeline, requests: list[bytes], steps: list[tuple[str, Any]]) -> None:
    sent: list[bytes] = []
    for step, detail in steps:
        if step == "send" and requests:
            sent.append(requests[int(detail) % len(requests)])
            pipeline.take(sent[-1])
        elif step == "again" and sent:
            pipeline.take(sent[int(detail) % len(sent)])
        elif step == "pause":
            pipeline.log.clock.now += detail
        elif step == "walk":
            await pipeline.walk()
    await pipeline.end()


def test_a_changed_recording_becomes_valid_signals(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        check_pipeline([mutated(seed(number), random)], [("send", 0)])

    fuzz(check, SEEDS, RANDOM)


def test_any_sequence_of_requests_becomes_valid_signals(fuzz: Fuzz) -> None:
    """A span that gives its trace id twice belongs to the first for the receiver, to the last for a parser.

    Its trace ends with outcomes that say that it could not be read.
    """

    def check(number: int, steps: list[tuple[str, Any]], random: Random) -> None:
        whole = seed(number)
        changed = (mutated(whole, random) for _ in range(3))
        check_pipeline([whole, *changed, torn(whole, random)], steps)

    fuzz(check, SEEDS, STEPS, RANDOM)


def test_damaged_records_end_no_room_and_every_trace_is_scored(fuzz: Fuzz) -> None:
    """What a damaged record says, where it still is a record, is not known: it may be anything."""

    async def run(pipeline: Pipeline, numbers: list[int], random: Random) -> None:
        for number in numbers:
            pipeline.take(seed(number))
            await pipeline.walk()
            pipeline.log.clock.now += 7
            await pipeline.walk()
            for topic in DAMAGED:
                pipeline.damage(topic, lambda value: torn(value, random))
            await pipeline.walk()
        await pipeline.end()

    def check(numbers: list[int], random: Random) -> None:
        pipeline = Pipeline()
        asyncio.run(run(pipeline, numbers, random))
        traces = {decode_signal(each).trace_id for each in pipeline.signals}
        whole = Pipeline()
        sent = {
            piece.key.hex() for n in numbers if (s := whole.take(seed(n))) for piece in s.pieces
        }
        assert sent - pipeline.pieces <= traces

    fuzz(check, st.lists(SEEDS, min_size=1, max_size=3), RANDOM)


def test_damaged_bytes_are_a_record_or_undecodable(fuzz: Fuzz) -> None:
    pipeline = Pipeline()
    asyncio.run(_run(pipeline, [seed(n) for n in range(40)], [("send", n) for n in range(40)]))
    records = {topic: pipeline.log.history(topic) for topic in DECODERS}

    def check(topic: str, number: int, random: Random) -> None:
        kept = records[topic]
        check_record(topic, torn(kept[number % len(kept)].value if kept else b"\x83", random))

    fuzz(check, st.sampled_from(sorted(DECODERS)), SEEDS, RANDOM)


def check_record(topic: str, value: bytes) -> None:
    for decode in DECODERS[topic]:
        with suppress(Undecodable):
            decode(value)


@pytest.mark.parametrize("file", corpus("records"), ids=lambda file: file.name)
def test_records_that_once_broke_something_do_not(file: Path) -> None:
    for topic in DECODERS:
        check_record(topic, file.read_bytes())


def test_names_out_of_a_trace_make_keys_that_stay_apart(fuzz: Fuzz) -> None:
    def check(service: str, session: str) -> None:
        read = clean(service), clean(session)
        assert split_session_key(session_key(*read)) == read

    fuzz(check, st.text(max_size=12), st.text(max_size=12))
