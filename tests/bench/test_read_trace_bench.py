"""What reading a trace costs beside a bare protobuf parse of the same bytes, in one run."""

import gc
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluators.dialects.read import read_trace
from evaluators.model import JSON
from tests.bench.load import requests
from tests.support.bench_traces import pieces_of
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request

pytestmark = pytest.mark.bench
WORDS = "the order was shipped on friday and will arrive in two days " * 40


def recorded(calls: int, result: str) -> bytes:
    """An agent's trace: a growing history in every model call, a tool call between two of them."""
    history: list[JSON] = [{"role": "user", "parts": [{"type": "text", "content": WORDS}]}]
    spans = [
        SpanSpec(
            id=1, attributes={"gen_ai.operation.name": "invoke_agent", "session.id": "s"}, end=9_999
        )
    ]
    for number in range(calls):
        part = {
            "type": "tool_call",
            "id": f"c{number}",
            "name": "search",
            "arguments": {"q": str(number)},
        }
        answer = {"role": "assistant", "parts": [part]}
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.id": f"r{number}",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([answer]),
            **{f"app.attribute.{index}": index for index in range(20)},
        }
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": f"c{number}",
            "gen_ai.tool.call.arguments": json.dumps({"q": str(number)}),
            "gen_ai.tool.call.result": result,
        }
        spans.append(SpanSpec(id=10 + 2 * number, parent=1, attributes=chat, start=20 * number))
        spans.append(
            SpanSpec(id=11 + 2 * number, parent=1, attributes=tool, start=20 * number + 10)
        )
        history = [*history[-4:], answer]
    return request(*spans)


def best(*actions: Callable[[], object]) -> list[float]:
    """CPU seconds of the fastest of 15 runs of each, taken in turns."""
    return [min(each) for each in zip(*turns(*actions), strict=True)]


def turns(*actions: Callable[[], object]) -> list[list[float]]:
    """CPU seconds of each, 15 times in turns."""

    def taken(action: Callable[[], object]) -> float:
        start = time.process_time()
        action()
        return time.process_time() - start

    gc.collect()
    return [[taken(action) for action in actions] for _ in range(15)]


def reading(raw: bytes, times: int = 20) -> Callable[[], object]:
    def read() -> None:
        for _ in range(times):
            read_trace([raw], trace_id=TRACE_ID, closed="root_ended")

    return read


def reading_ratio(*, matching: bool) -> float:
    """CPU of `read_trace` over the whole load / of parsing the same pieces with OTLP's own messages.

    Args:
        matching: Whether tools' spans carry the ids that models asked with.
    """
    loaded = pieces_of(requests(60, 64, matching=matching))

    def read() -> None:
        for trace_id, pieces in loaded.items():
            read_trace(pieces, trace_id=trace_id, closed="root_ended")

    def parse() -> None:
        for pieces in loaded.values():
            for piece in pieces:
                ExportTraceServiceRequest.FromString(piece)

    # Of one turn each: beside other work a parse finds a quiet moment, which the longer reading does not.
    return statistics.median(reads / parses for reads, parses in turns(read, parse))


@pytest.mark.parametrize(("matching", "held"), [(True, 30), (False, 40)])
def test_reading_costs_a_bounded_multiple_of_a_bare_parse(matching: bool, held: float) -> None:
    """Reached: 22 with ids that match, 30 without (17 and 23 in tree b7916fe); up to 26 beside other work."""
    ratio = reading_ratio(matching=matching)

    print(f"read_trace / parse, ids {'match' if matching else 'differ'}: {ratio:.1f}")
    assert ratio < held


@pytest.mark.parametrize(("matching", "held"), [(True, 71), (False, 88)])
def test_a_span_is_read_in_a_bounded_number_of_calls(matching: bool, held: float) -> None:
    """Functions of Python that reading enters: the same on every machine, and most of what it costs.

    Measured: 70.3 and 86.9. Joining by ids whatever the clocks say, pauses and masks took 6 and 9 of them (decision
    42); what is around a tool's result and whether it or its span says that the call failed, 7; what somebody stopped,
    3.
    """
    loaded = pieces_of(requests(60, 64, matching=matching))
    for trace_id, pieces in loaded.items():  # what is remembered of keys is
        read_trace(pieces, trace_id=trace_id, closed="root_ended")
    entered = Counter[str]()

    def count(_frame: object, event: str, _argument: object) -> None:
        entered[event] += 1

    sys.setprofile(count)
    try:
        traces = [
            read_trace(pieces, trace_id=trace_id, closed="root_ended")
            for trace_id, pieces in loaded.items()
        ]
    finally:
        sys.setprofile(None)
    calls = entered["call"] / sum(trace.spans for trace in traces)

    print(f"calls a span, ids {'match' if matching else 'differ'}: {calls:.2f}")
    assert calls < held


def test_a_small_trace_costs_a_bounded_multiple_of_a_bare_parse() -> None:
    raw = recorded(10, "done")

    def parse() -> None:
        for _ in range(20):
            ExportTraceServiceRequest.FromString(raw)

    ratio = statistics.median(reads / parses for reads, parses in turns(reading(raw), parse))

    print(f"read_trace / parse, a third of the bytes a span: {ratio:.1f}")
    assert ratio < 55  # 42 measured while others share the machine


def test_a_huge_tool_result_costs_no_more_per_byte_than_the_mean() -> None:
    usual, huge = recorded(10, "done " * 100), recorded(10, "x" * 150_000)

    small, large = best(reading(usual), reading(huge))
    per_byte = small / len(usual) / 20, large / len(huge) / 20

    print(f"ns per byte: usual {per_byte[0] * 1e9:.1f}, huge {per_byte[1] * 1e9:.1f}")
    assert per_byte[1] <= per_byte[0]
