"""One question about the weather, its tool call and its answer, as the tests of dialects tell them."""

import json
from typing import Any

from evaluators.model import ToolCall, Trace

QUESTION = "Is it raining in Paris?"
ANSWER = "Yes, it rains."
ARGUMENTS = {"city": "Paris"}
RESULT = "rainy, 14 °C"
USER = {"role": "user", "content": QUESTION}
SAID = {"role": "assistant", "content": ANSWER}


def dump(value: Any) -> str:
    """JSON as Python writes it."""
    return json.dumps(value)


def compact(value: Any) -> str:
    """JSON without blanks, as JavaScript and some Python encoders write it."""
    return json.dumps(value, separators=(",", ":"))


def one_call(trace: Trace) -> ToolCall:
    """The only tool call of a trace."""
    (call,) = trace.tool_calls
    return call
