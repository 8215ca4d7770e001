"""OpenAI's messages around one tool call."""

import json

from evaluators.model import Trace
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, one_call

FUNCTION = {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)}


CALL = {"id": "c1", "type": "function", "function": FUNCTION}


ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


TOLD = {"role": "tool", "tool_call_id": "c1", "content": RESULT}


def assert_whole(trace: Trace, *, tool: str = "get_weather") -> None:
    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.name, call.arguments, call.result, call.error) == (
        tool,
        ARGUMENTS,
        RESULT,
        None,
    )
