"""What a convention or a model wrote as a tool's arguments is the tool's own, whatever its parameters are called."""

from typing import Any

from tests.support.conventions import made, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openinference import SCOPE, of
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
KIND = {"traceloop.span.kind": "tool"}
NAME = {"gen_ai.tool.name": "dispatch"}
LANGCHAIN = "opentelemetry.instrumentation.langchain"
OPENINFERENCE = of("TOOL", tool__name="dispatch")
AI_SDK = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "dispatch"}
MLFLOW = {"mlflow.spanType": '"TOOL"', "mlflow.spanFunctionName": '"dispatch"'}


@for_each("own", OWN)
@for_each(
    "scope,marks,key",
    [
        ("app", tool("dispatch"), "gen_ai.tool.call.arguments"),
        (LANGCHAIN, {**KIND, **NAME}, "gen_ai.tool.call.arguments"),
        (SCOPE + "langchain", OPENINFERENCE, "input.value"),
        ("ai", AI_SDK, "ai.toolCall.args"),
        ("pydantic-ai", NAME, "tool_arguments"),
        ("mlflow", MLFLOW, "mlflow.spanInputs"),
    ],
)
def test_arguments_are_not_taken_out_of_the_tools_own_object(
    scope: str, marks: dict[str, str], key: str, own: dict[str, Any]
) -> None:
    span = made(2, 0, {**marks, key: dump(own)}, name="running tool", scope=scope)

    assert one_call(trace_of(SpanSpec(id=1), span)).arguments == own


ARGUMENTS: dict[str, Any] = {"kwargs": {"a": 1}}
CALLED: dict[str, Any] = {"args": [], "kwargs": ARGUMENTS}
CALLBACK: dict[str, Any] = {"inputs": ARGUMENTS, "input_str": str(ARGUMENTS), "tags": []}
LANGFUSE = {"langfuse.observation.type": "tool"}


@for_each(
    "scope,marks,key,sent",
    [
        ("traceloop.tracer", KIND, "traceloop.entity.input", CALLED),
        (LANGCHAIN, KIND, "traceloop.entity.input", CALLBACK),
        (SCOPE + "dspy", of("TOOL"), "input.value", {"kwargs": ARGUMENTS}),
        ("langfuse-sdk", LANGFUSE, "langfuse.observation.input", CALLED),
    ],
)
def test_what_a_framework_puts_around_its_arguments_is_taken_off_once(
    scope: str, marks: dict[str, str], key: str, sent: Any
) -> None:
    span = made(2, 0, {**marks, key: dump(sent)}, name="dispatch", scope=scope)

    assert one_call(trace_of(SpanSpec(id=1), span)).arguments == ARGUMENTS
