"""One question, one tool call and its answer, in the spans of one dialect: what every dialect must say of them."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
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


def three_spans(
    *,
    scope: str,
    root: dict[str, Any],
    first: dict[str, Any],
    tool: dict[str, Any],
    last: dict[str, Any],
    **names: str,
) -> Trace:
    """Root, model call, tool, model call."""
    return trace_of(
        SpanSpec(
            id=1,
            name=names.get("root_name", "helper"),
            attributes=root,
            start=0,
            end=90,
            scope=scope,
        ),
        SpanSpec(
            id=2,
            parent=1,
            name=names.get("llm_name", "chat"),
            attributes=first,
            start=10,
            end=20,
            scope=scope,
        ),
        SpanSpec(
            id=3,
            parent=1,
            name=names.get("tool_name", "get_weather"),
            attributes=tool,
            start=30,
            end=40,
            scope=scope,
        ),
        SpanSpec(
            id=4,
            parent=1,
            name=names.get("llm_name", "chat"),
            attributes=last,
            start=50,
            end=60,
            scope=scope,
        ),
    )


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


def assert_says_what_was_offered(trace: Trace) -> None:
    (tool,) = trace.tools_offered
    assert (tool.name, tool.parameters) == ("get_weather", SCHEMA)
    assert "no_tool_definitions" not in trace.gaps
