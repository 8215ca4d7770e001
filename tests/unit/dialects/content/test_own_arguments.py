"""What a convention or a model wrote as a tool's arguments is the tool's own, whatever its parameters are called."""

from typing import Any

from tests.support.conventions import made, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import dump, one_call

OWN: tuple[dict[str, Any], ...] = (
    {"inputs": {"city": "Oslo"}},
    {"input": {"v": 1}, "options": {"to": "eur"}},
    {"kwargs": {"a": 1}},
    {"args": [1], "kwargs": {"a": 1}},
    {"args": ["ls"]},
    {"tool_name": "mcp__linear__get_issue", "arguments": {"id": "7"}},
    {"type": "tool_call", "args": {"a": 1}},
    {"calling": "x", "tool_string": "y"},
    {"input": {"kwargs": {"a": 1}}},
)
SPANS: dict[str, tuple[str, dict[str, str], str]] = {
    "convention": ("app", tool("dispatch"), "gen_ai.tool.call.arguments"),
    "convention under OpenLLMetry": (
        "opentelemetry.instrumentation.langchain",
        {"traceloop.span.kind": "tool", "gen_ai.tool.name": "dispatch"},
        "gen_ai.tool.call.arguments",
    ),
    "OpenInference": (
        "openinference.instrumentation.langchain",
        {"openinference.span.kind": "TOOL", "tool.name": "dispatch"},
        "input.value",
    ),
    "AI SDK": (
        "ai",
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "dispatch"},
        "ai.toolCall.args",
    ),
    "logfire": ("pydantic-ai", {"gen_ai.tool.name": "dispatch"}, "tool_arguments"),
    "MLflow": (
        "mlflow",
        {"mlflow.spanType": '"TOOL"', "mlflow.spanFunctionName": '"dispatch"'},
        "mlflow.spanInputs",
    ),
}


@for_each("own", OWN)
@for_each("by", SPANS)
def test_arguments_are_not_taken_out_of_the_tools_own_object(by: str, own: dict[str, Any]) -> None:
    scope, marks, key = SPANS[by]
    span = made(2, 0, {**marks, key: dump(own)}, name="running tool", scope=scope)

    assert one_call(trace_of(SpanSpec(id=1), span)).arguments == own


ARGUMENTS: dict[str, Any] = {"kwargs": {"a": 1}}
CALLED: dict[str, Any] = {"args": [], "kwargs": ARGUMENTS}
CALLBACK: dict[str, Any] = {"inputs": ARGUMENTS, "input_str": str(ARGUMENTS), "tags": []}
KIND = {"traceloop.span.kind": "tool"}


@for_each(
    "scope,marks,key,sent",
    [
        ("traceloop.tracer", KIND, "traceloop.entity.input", CALLED),
        ("opentelemetry.instrumentation.langchain", KIND, "traceloop.entity.input", CALLBACK),
        (
            "openinference.instrumentation.dspy",
            {"openinference.span.kind": "TOOL"},
            "input.value",
            {"kwargs": ARGUMENTS},
        ),
        (
            "langfuse-sdk",
            {"langfuse.observation.type": "tool"},
            "langfuse.observation.input",
            CALLED,
        ),
    ],
)
def test_what_a_framework_puts_around_its_arguments_is_taken_off_once(
    scope: str, marks: dict[str, str], key: str, sent: Any
) -> None:
    span = made(2, 0, {**marks, key: dump(sent)}, name="dispatch", scope=scope)

    assert one_call(trace_of(SpanSpec(id=1), span)).arguments == ARGUMENTS
