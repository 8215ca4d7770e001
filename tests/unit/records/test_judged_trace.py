"""Which traces a judge reads: those that scoring takes for turns, so that each due verdict comes from one of them."""

import msgspec
import pytest

from collector.records.trace_views import decode_judged_trace
from evaluators.model import AgentStep, ModelCall, ToolCall, Trace
from tests.support.api_records import trace


@pytest.mark.parametrize(
    ("made", "judged"),
    [
        (trace(tool_calls=()), False),
        (trace(tool_calls=(ToolCall(name="f"),)), True),
        (trace(tool_calls=(), model_calls=(ModelCall(span_id="1"),)), True),
        (trace(tool_calls=(), steps=(AgentStep(span_id="1"),)), True),
        (trace(unread="too_large"), False),
    ],
)
def test_a_judge_reads_turns(made: Trace, judged: bool) -> None:
    raw = msgspec.Raw(msgspec.msgpack.encode(made))

    assert decode_judged_trace(raw).is_judged is judged
