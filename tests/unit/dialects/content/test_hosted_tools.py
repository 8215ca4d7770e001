"""Calls of tools that the provider runs stand in its answer, with their results."""

from typing import Any

from evaluators.model import Trace
from tests.support.conventions import model
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import dump, one_call

TEXT = {"type": "output_text", "text": "ok"}
ANSWER = {"type": "message", "role": "assistant", "content": [TEXT]}
LOGS = [{"type": "logs", "logs": "2"}]
FOUND = [{"file_id": "f"}]
ITEMS: tuple[tuple[dict[str, Any], str, Any, Any, str | None], ...] = (
    ({"type": "web_search_call", "action": {"type": "search", "query": "news"}},
     "web_search", {"query": "news"}, None, None),
    ({"type": "file_search_call", "queries": ["x"], "results": FOUND},
     "file_search", {"queries": ["x"]}, FOUND, None),
    ({"type": "code_interpreter_call", "code": "1+1", "outputs": LOGS},
     "code_interpreter", {"code": "1+1"}, LOGS, None),
    ({"type": "mcp_call", "name": "get", "arguments": '{"id": 7}', "output": "seven"},
     "get", {"id": 7}, "seven", None),
    ({"type": "mcp_call", "name": "get", "arguments": "{}", "error": "not found"},
     "get", None, "not found", "not found"),
    ({"type": "web_search_call", "status": "failed"}, "web_search", None, None, "error"),
    ({"type": "image_generation_call", "result": "iVBORw0KGgo"}, "image_generation", None, None, None),
)  # fmt: skip


@for_each("written,name,arguments,result,error", ITEMS)
@for_each("alone", [True, False])
def test_items_of_openais_answers_are_calls(
    written: Any, name: str, arguments: Any, result: Any, error: str | None, alone: bool
) -> None:
    output: list[Any] = [{"id": "i1", **written}, *([] if alone else [ANSWER])]
    convention = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": dump(output)}
    openinference = {"openinference.span.kind": "LLM", "output.value": dump({"output": output})}
    for attributes in (convention, openinference):
        trace = trace_of(SpanSpec(id=1, attributes=attributes))

        call = one_call(trace)
        assert (call.name, call.id, call.arguments) == (name, "i1", arguments)
        assert (call.result, call.error) == (result, error)
        assert trace.output == (None if alone else "ok")


def answered(*parts: dict[str, Any], key: str = "parts") -> Trace:
    return trace_of(model(1, answer=dump([{"role": "assistant", key: [*parts]}])))


def test_the_conventions_parts_of_a_providers_tools() -> None:
    asked = {"type": "server_tool_call", "id": "s1", "name": "web_search"}
    came = {"type": "server_tool_call_response", "id": "s1"}
    trace = answered(
        {**asked, "server_tool_call": {"type": "web_search", "query": "news"}},
        {**came, "server_tool_call_response": {"type": "web_search", "results": [1]}},
        {"type": "text", "content": "ok"},
    )

    call = one_call(trace)
    assert (call.id, call.arguments, call.result) == ("s1", {"query": "news"}, {"results": [1]})
    assert trace.output == "ok"


@for_each("tool", ["web_search", "web_fetch", "code_execution", "new_tool"])
def test_what_anthropics_tools_answer_is_the_result_of_their_calls(tool: str) -> None:
    kind = f"{tool}_tool_result"
    use = {"type": "server_tool_use", "id": "s1", "name": tool, "input": {"q": 1}}
    for content, fails in (({"type": f"{tool}_result"}, False), ({"type": f"{kind}_error"}, True)):
        came = {"type": kind, "tool_use_id": "s1", "content": content}
        call = one_call(answered(use, came, key="content"))
        assert (call.result, call.error is not None) == (content, fails)


def test_a_tool_is_offered_by_its_type_and_where_others_are_known_by_what_the_provider_ran() -> (
    None
):
    tools = [{"type": "web_search_preview"}, {"type": "function", "name": "f"}, {"type": "mcp"}]
    known = {"gen_ai.tool.definitions": dump(tools)}
    ran = dump([{"id": "m1", "type": "mcp_call", "name": "get", "arguments": "{}", "output": "7"}])

    for span, offered in (
        (model(1, attributes=known), ["web_search", "f"]),
        (model(1, answer=ran, attributes=known), ["web_search", "f", "get"]),
        (model(1, answer=ran), []),
    ):
        assert [tool.name for tool in trace_of(span).tools_offered] == offered
