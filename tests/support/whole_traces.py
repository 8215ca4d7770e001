"""One question, one tool call and its answer, in the spans of one dialect: what every dialect must say of them."""

from collections.abc import Mapping
from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, span_id, trace_of
from tests.support.openai_messages import CALL
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
OPENAI_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}


PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
HISTORY = [
    *PROMPT,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": RESULT},
]


def flattened(prefix: str, messages: list[dict[str, Any]], nest: str = "") -> dict[str, Any]:
    """Messages as flattened attribute keys: OpenLLMetry's, or with `nest` OpenInference's."""
    out: dict[str, Any] = {}
    for index, message in enumerate(messages):
        stem = f"{prefix}.{index}.{nest}"
        for key in ("role", "content", "tool_call_id"):
            if message.get(key) is not None:
                out[stem + key] = message[key]
        for number, call in enumerate(message.get("tool_calls", [])):
            inner = f"{stem}tool_calls.{number}." + ("tool_call." if nest else "")
            function = "function." if nest else ""
            out[f"{inner}id"] = call["id"]
            out[f"{inner}{function}name"] = call["function"]["name"]
            out[f"{inner}{function}arguments"] = call["function"]["arguments"]
    return out


def usages(prefix: str, given: str, came: str) -> tuple[dict[str, int], dict[str, int]]:
    return {f"{prefix}{given}": 100, f"{prefix}{came}": 10}, {
        f"{prefix}{given}": 150,
        f"{prefix}{came}": 20,
    }


PARTS_CALL = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS}


def assert_says_what_happened(trace: Trace, *, agents: tuple[str, ...] = ("helper",)) -> None:
    assert trace.input == QUESTION
    assert trace.output == ANSWER
    assert trace.system == "Be brief."
    assert (trace.tokens.input, trace.tokens.output) == (250, 30)
    assert len(trace.model_calls) == 2
    assert trace.agents == agents
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result, call.error) == (
        "get_weather",
        ARGUMENTS,
        RESULT,
        None,
    )
    assert call.id == "c1"
    assert call.span_id == span_id(3)


def assert_whole_turn(
    *,
    scope: str,
    root: Mapping[str, Any],
    first: Mapping[str, Any],
    tool: Mapping[str, Any],
    last: Mapping[str, Any],
    offered: bool = True,
    agents: tuple[str, ...] = ("helper",),
    **names: str,
) -> None:
    """The attributes of an agent's span and of those in it, a call of the model, its tool, the next call, say it all.

    `offered`: whether they say which tools were offered. `names`: of the spans, where they are not the usual ones.
    """
    model = {NAME: names.get("llm_name", "chat")}
    trace = trace_of(
        {NAME: names.get("root_name", "helper"), **root},
        {**model, **first},
        {NAME: names.get("tool_name", "get_weather"), **tool},
        {**model, **last},
        scope=scope,
    )
    assert_says_what_happened(trace, agents=agents)
    if offered:
        (described,) = trace.tools_offered
        assert (described.name, described.parameters) == ("get_weather", SCHEMA)
        assert "no_tool_definitions" not in trace.gaps
