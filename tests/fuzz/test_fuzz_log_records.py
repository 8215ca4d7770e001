"""Log records of agents, changed, torn and mixed with their spans: every record is counted, every trace is scored."""

import asyncio
from functools import partial
from random import Random
from typing import get_args

import pytest
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.segment import Segment, trace_state
from collector.otlp.split_logs import split_logs, split_traces
from evaluators.dialects.turns.place import Dropped
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz
from tests.fuzz.pipeline import Pipeline, Split, check_signals
from tests.support.log_mutation import beside, log_seeds, mutated_logs
from tests.support.mutation import torn
from tests.support.otlp import spans_of
from tests.support.spans import child, request, root, trace_id

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
