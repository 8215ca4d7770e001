"""What a convention or a model wrote as a tool's arguments is the tool's own, whatever its parameters are called."""

from typing import Any

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
    "convention": (
        "app",
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "dispatch"},
        "gen_ai.tool.call.arguments",
    ),
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
    attributes = {**marks, key: dump(own)}
    tool = SpanSpec(id=2, parent=1, name="running tool", scope=scope, attributes=attributes)

    assert one_call(trace_of(SpanSpec(id=1), tool)).arguments == own


def test_what_a_framework_puts_around_its_arguments_is_taken_off_once() -> None:
    own = {"kwargs": {"a": 1}}
    called: dict[str, Any] = {"args": [], "kwargs": own}
    callback: dict[str, Any] = {"inputs": own, "input_str": str(own), "tags": []}
    for scope, marks, key, sent in (
        (
            "traceloop.tracer",
            {"traceloop.span.kind": "tool"},
            "traceloop.entity.input",
            called,
        ),
        (
            "opentelemetry.instrumentation.langchain",
            {"traceloop.span.kind": "tool"},
            "traceloop.entity.input",
            callback,
        ),
        (
            "openinference.instrumentation.dspy",
            {"openinference.span.kind": "TOOL"},
            "input.value",
            {"kwargs": own},
        ),
        (
            "langfuse-sdk",
            {"langfuse.observation.type": "tool"},
            "langfuse.observation.input",
            called,
        ),
    ):
        attributes = {**marks, key: dump(sent)}
        tool = SpanSpec(id=2, parent=1, name="dispatch", scope=scope, attributes=attributes)

        assert one_call(trace_of(SpanSpec(id=1), tool)).arguments == own
