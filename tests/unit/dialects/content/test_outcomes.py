"""What a tool returned and was given, and whether it failed, whatever stands around it.

More shapes are in `tests/data/tool_results.jsonl`, of which every dialect is tried.
"""

import json
from collections.abc import Sequence
from typing import Any

from evaluators.dialects.content.outcomes import arguments_in, outcome_of
from evaluators.model import JSON
from tests.support.conventions import made, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openinference import SCOPE, of
from tests.support.table import for_each
from tests.support.weather import dump, one_call

NAME, ID = "count_pallets", "c1"
TEXT = [{"type": "text", "text": "bay 4 is locked"}]


@for_each(
    "recorded,result,error",
    [
        (
            {"type": "function_result", "call_id": ID, "result": "", "exception": "late"},
            "late",
            "late",
        ),
        ({"id": ID, "result": "12", "timestamp": "2026-11-29T06:37:50"}, "12", None),
        ({"type": "tool_call_response", "id": "x", "response": "12"}, "12", None),
        ({"$type": "functionResult", "callId": "x", "result": "12", "exception": None}, "12", None),
    ],
)
def test_what_is_of_the_call_is_not_of_the_result(
    recorded: JSON, result: str, error: str | None
) -> None:
    outcome = outcome_of(json.dumps(recorded), NAME, ID)

    assert (outcome.result, outcome.error) == (result, error)


@for_each(
    "result",
    [
        json.dumps([{"role": "tool", "content": text} for text in ("first", "second")]),
        [{"type": "text", "text": "a"}],
        *({"result": "12"}, {"result": "12", "error": "low battery"}),
        {"id": 4, "status": "open", "result": "12"},
    ],
)
def test_an_object_of_the_tool_is_not_opened(result: JSON) -> None:
    assert outcome_of(result, NAME, ID).result == result
    assert outcome_of(result, NAME, ID).error is None


def test_the_texts_of_a_tool_of_mcp_are_its_result_and_of_another_its_own() -> None:
    texts = json.dumps(TEXT)

    assert outcome_of(texts, "mcp__depot__count_pallets", ID).result == "bay 4 is locked"
    assert outcome_of(texts, NAME, ID).result == texts


@for_each(
    "definition",
    [
        {"name": NAME, "description": "Counts.", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": NAME, "parameters": {"type": "object"}}},
        [{"name": NAME, "description": "Counts.", "parameters": {"type": "object"}}],
        f"FunctionTool(name='{NAME}', description='Counts.', params_json_schema={{'type': 'object'}})",
        f"name='{NAME}' description='Counts.' args_schema=<class 'x.Schema'>",
    ],
)
def test_the_tool_itself_where_its_result_should_stand_is_no_result(definition: JSON) -> None:
    recorded = definition if isinstance(definition, str) else json.dumps(definition)

    assert outcome_of(recorded, NAME, ID).result is None


def test_arguments_are_taken_out_of_a_call_that_names_itself_only() -> None:
    bay: dict[str, JSON] = {"bay": 4}

    assert arguments_in({"name": NAME, "args": bay}, NAME, None) == bay
    assert arguments_in({"id": ID, "arguments": '{"bay": 4}', "type": "function"}, NAME, ID) == bay
    dispatched: JSON = {"tool_name": "linear", "arguments": bay}
    assert arguments_in(dispatched, NAME, ID) == dispatched
    own: JSON = {"input": bay, "options": {}}
    assert arguments_in(own, NAME, ID) == own


FLAG = ((True, True), ("true", True), (False, False))
WORDS = (("bay 4 is locked", True), (True, True), ("", False), ("none", False), (0.02, False))
STATE = (("error", True), ("failed", True), ("success", False))
DONE = ((False, True), (True, False))
CODE = ((-32602, True), ("Locked", True), (0, False), ("0", False))
SPOKEN = """error tool.error gen_ai.tool.call.error tool.error.message error.message ai.toolCall.error
exception.message"""
MARKS: dict[str, Sequence[tuple[JSON, bool]]] = {
    **dict.fromkeys(
        ("mcp.tool.result.is_error", "mcp.isError", "tool.is_error", "lk.function_tool.is_error"),
        FLAG,
    ),
    **dict.fromkeys(SPOKEN.split(), WORDS),
    **dict.fromkeys(("gen_ai.tool.status", "mcp.tool.status", "tool.result.status"), STATE),
    **dict.fromkeys(("success", "tool.success", "tool_success"), DONE),
    **dict.fromkeys(("rpc.jsonrpc.error_code", "mcp.error.code", "tool.error.type"), CODE),
    "exception.type": CODE,
    "jsonrpc.error": [('{"code": -32602, "message": "bay 4 is locked"}', True)],
    "http.error.code": [(5, False)],
    "gen_ai.tool.call.arguments.status": [("error", False)],
    "tool.parameters.error": [("late", False)],
    "tool.output.status": [("error", False)],  # one of the fields that the tool returned
    "order.status": [("error", False)],
    "order.success": [(False, False)],
    "order.error": [("late", False)],
}
TOOL: dict[str, JSON] = {"openinference.span.kind": "TOOL", "tool.name": NAME}


@for_each("key,mark,failed", [(key, *mark) for key, marks in MARKS.items() for mark in marks])
def test_an_attribute_that_says_so_makes_the_call_a_failed_one(
    key: str, mark: JSON, failed: bool
) -> None:
    returned = {"output.value": "bay 4 is locked", "tool.output.bays": 4}
    span = made(2, 1, {**TOOL, **returned, key: mark}, name=NAME)

    assert one_call(trace_of(SpanSpec(id=1, name="agent", end=9), span)).failed is failed


def test_a_hostile_result_costs_no_more_than_reading_it_once() -> None:
    many = "{" + ",".join(['"error":""'] * 1_000_000) + "}"
    other = '{"error":"e",' + ",".join(f'"error{n}":1' for n in range(60_000)) + "}"
    spelled: JSON = {"_" * n + "error": "e" for n in range(40)}  # more keys than any envelope has
    deep = '{"id":"c1","response":' * 10_000 + '"12"' + "}" * 10_000
    nested: JSON = "12"
    for _ in range(400):
        nested = {"id": ID, "response": nested}

    assert [outcome_of(each, NAME, ID).error for each in (many, other, spelled)] == [None] * 3
    assert outcome_of(deep, NAME, ID).result == deep
    left = outcome_of(json.dumps(nested), NAME, ID).result
    assert json.dumps(left).count("response") == 400 - 8  # as many as are taken off
    for others, failed in ((20, True), (200, False)):  # to look for its fields costs the square
        more: dict[str, JSON] = {f"k{n}": n for n in range(others)}
        span = made(2, 0, {**more, **TOOL, "tool.result.status": "error"})
        assert one_call(trace_of(SpanSpec(id=1, end=9), span)).failed is failed


# --- what a convention or a model wrote as arguments is the tool's own, whatever its parameters are called -----------


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
OF_DISPATCH = {"gen_ai.tool.name": "dispatch"}
LANGCHAIN = "opentelemetry.instrumentation.langchain"
OPENINFERENCE = of("TOOL", tool__name="dispatch")
AI_SDK = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "dispatch"}
MLFLOW = {"mlflow.spanType": '"TOOL"', "mlflow.spanFunctionName": '"dispatch"'}


@for_each("own", OWN)
@for_each(
    "scope,marks,key",
    [
        ("app", tool("dispatch"), "gen_ai.tool.call.arguments"),
        (LANGCHAIN, {**KIND, **OF_DISPATCH}, "gen_ai.tool.call.arguments"),
        (SCOPE + "langchain", OPENINFERENCE, "input.value"),
        ("ai", AI_SDK, "ai.toolCall.args"),
        ("pydantic-ai", OF_DISPATCH, "tool_arguments"),
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
