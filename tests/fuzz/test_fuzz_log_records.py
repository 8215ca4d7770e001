"""Log records of agents, changed, torn and mixed with their spans: every record is counted, every trace is scored."""

import asyncio
import os
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs

from collector.otlp.segment import Segment, trace_state
from collector.otlp.split_logs import split_logs, split_traces
from evaluators.dialects.turns.place import Dropped
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz
from tests.fuzz.pipeline import Pipeline, Split, check_signals
from tests.support.mutation import LARGEST, NUMBERS, TEXTS, TIMES, replace_value, torn
from tests.support.otlp import spans_of
from tests.support.recordings import requests
from tests.support.spans import child, request, root, trace_id

CAPTURES = Path(
    os.environ.get("SPANWISE_LOG_CAPTURES") or Path(__file__).parents[1] / "data" / "captures_logs"
)
PLACING = (
    "event.name",
    "session.id",
    "prompt.id",
    "prompt_id",
    "conversation.id",
    "call_id",
    "tool_use_id",
    "request_id",
    "duration_ms",
    "event.sequence",
)
"""Attributes that say where a record belongs."""


@cache
def log_seeds() -> tuple[bytes, ...]:
    """Requests of records of all recordings that are small enough, in order."""
    every = (each for path in sorted(CAPTURES.rglob("*.logs.otlp")) for each in requests(path))
    return tuple(each for each in every if len(each) <= LARGEST)


@cache
def beside(number: int) -> bytes:
    """A request of spans of a recording that has records too."""
    paths = [each for each in sorted(CAPTURES.rglob("*.otlp")) if each.suffixes == [".otlp"]]
    every = [each for path in paths for each in requests(path) if len(each) <= LARGEST]
    return every[number % len(every)]


def mutated_logs(seed: bytes, random: Random) -> bytes:
    """A request like the seed with a few changes; still a valid message."""
    request = ExportLogsServiceRequest.FromString(seed)
    scopes = [scope for group in request.resource_logs for scope in group.scope_logs]
    records = [record for scope in scopes for record in scope.log_records]
    if not records:
        return seed
    for _ in range(random.randint(1, 8)):
        _change(scopes, records, random)
    return request.SerializeToString()


def _change(scopes: list[ScopeLogs], records: list[LogRecord], random: Random) -> None:
    record, other = random.choice(records), random.choice(records)
    match random.randrange(8):
        case 0:
            record.time_unix_nano = random.choice(TIMES)
            record.observed_time_unix_nano = random.choice(TIMES)
        case 1:
            record.trace_id = random.choice((b"", b"\0" * 16, b"x", other.trace_id, b"t" * 16))
            record.span_id = random.choice((b"", b"\0" * 8, b"x", other.span_id, b"s" * 8))
        case 2:
            random.choice(scopes).log_records.add().CopyFrom(record)
        case 3:
            _place_elsewhere(record, random)
        case 4:
            record.event_name = random.choice(TEXTS)
        case 5:
            body = KeyValue(value=record.body)
            replace_value(body, random)
            record.body.CopyFrom(body.value)
        case 6:
            scope = random.choice(scopes).scope
            scope.name = random.choice((*TEXTS, random.choice(scopes).scope.name))
        case _:
            if record.attributes:
                replace_value(random.choice(record.attributes), random)


def _place_elsewhere(record: LogRecord, random: Random) -> None:
    """Another value under a key that places it, or the key twice."""
    key = random.choice(PLACING)
    held = [each for each in record.attributes if each.key == key]
    value = held[0] if held and random.random() < 0.7 else record.attributes.add(key=key)
    if random.random() < 0.5:
        value.value.int_value = random.choice(NUMBERS)
    else:
        value.value.string_value = random.choice((*TEXTS, *map(str, NUMBERS)))


pytestmark = pytest.mark.timeout(7200)
STEPS = st.lists(
    st.sampled_from(["again", "changed", "torn", "spans", "walk", "grace", "idle", "late"]),
    min_size=1,
    max_size=8,
)
SPLIT_TRACES = partial(split_traces, max_item=1 << 20)
_PAUSES = {"grace": 7.0, "idle": 400.0, "late": 4000.0}


def log_seed(number: int) -> bytes:
    return log_seeds()[number % len(log_seeds())]


def split(random: Random) -> Split:
    return partial(split_logs, max_item=1 << 20, joined=random.choice((0, 1 << 20)))


async def run(pipeline: Pipeline, number: int, steps: list[str], random: Random) -> None:
    whole = log_seed(number)
    pipeline.take(whole, split(random))
    for step in steps:
        if step == "walk":
            await pipeline.walk()
        elif step in _PAUSES:
            pipeline.log.clock.now += _PAUSES[step]
        elif step == "spans":
            pipeline.take(beside(number), SPLIT_TRACES)
        else:
            made = {"again": whole, "changed": mutated_logs(whole, random)}
            pipeline.take(made.get(step) or torn(whole, random), split(random))
    await pipeline.end()


def test_every_changed_record_is_accepted_rejected_or_dropped_for_a_reason(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        taken = Pipeline().take(mutated_logs(log_seed(number), random), split(random))
        assert taken is not None
        assert set(taken.dropped) <= set(get_args(Dropped))
        assert sum(taken.dropped.values()) <= taken.accepted

    fuzz(check, SEEDS, RANDOM)


def test_any_sequence_of_records_and_spans_becomes_valid_signals(fuzz: Fuzz) -> None:
    def check(number: int, steps: list[str], random: Random) -> None:
        pipeline = Pipeline()
        asyncio.run(run(pipeline, number, steps, random))
        check_signals(pipeline.signals)
        assert pipeline.passed_over == 0

    fuzz(check, SEEDS, STEPS, RANDOM)


@pytest.mark.parametrize("turn", [b"t", b"t" * 40, bytes(16)])
def test_a_trace_state_of_a_sender_that_looks_like_ours_ends_no_room(turn: bytes) -> None:
    forged = Segment(owner=b"o" * 16, session=b"s" * 8, start=1, turn=turn, is_prompt=True)
    message = ExportTraceServiceRequest.FromString(request(root(1), child(2)))
    for span in spans_of(message):
        span.trace_state = trace_state(forged)
    pipeline = Pipeline()
    pipeline.take(message.SerializeToString(), SPLIT_TRACES)

    asyncio.run(pipeline.end())

    signals = check_signals(pipeline.signals)
    assert {each["trace_id"] for each in signals} - {None} == {trace_id(1).hex()}
