"""Google's ADK, also 1.x."""

from typing import Any

from tests.support.conventions import tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.openai_messages import assert_whole
from tests.support.openinference import SCOPE, of
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump, one_call
from tests.support.whole_traces import SCHEMA, assert_whole_turn

ADK = "gcp.vertex.agent"


def adk(**own: Any) -> dict[str, Any]:
    """Attributes of ADK's own; what is no text as JSON."""
    texts = {key: value if isinstance(value, str) else dump(value) for key, value in own.items()}
    return under(f"{ADK}.", **texts)


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


@for_each(
    "reported,error",
    [
        ({"status": "error", "error_message": "timed out"}, "timed out"),
        ({"status": "error", "error_message": "timed out", "city": "Paris"}, "timed out"),
        ({"status": "error", "message": "timed out"}, "timed out"),
        ({"status": "error"}, "error"),
        ({"status": "error", "city": "Paris", "orders": 3}, None),
        ({"status": "error", "orders": 3}, None),
    ],
)
def test_adk_tools_that_report_failure_as_its_documentation_says(
    reported: dict[str, Any], error: str | None
) -> None:
    name = {NAME: "execute_tool get_weather"}
    own = adk(tool_call_args=compact(ARGUMENTS), tool_response=compact(reported))
    response = compact({"id": "a1", "name": "get_weather", "response": reported})
    sides = {"input__value": compact(ARGUMENTS), "output__value": response}
    beside = of("TOOL", tool__name="get_weather", **sides)

    assert one_call(trace_of({**name, **tool(), **own}, scope=ADK)).error == error
    assert one_call(trace_of({**name, **beside}, scope=SCOPE + "google_adk")).error == error


def test_older_google_adk_keeps_everything_under_its_own_keys() -> None:
    def call(part: dict[str, Any]) -> SpanSpec:
        request = {"model": "gemini", "contents": [content("user", {"text": QUESTION})]}
        own = adk(
            session_id="s-1",
            invocation_id="e-1",
            llm_request=request,
            llm_response={"content": content("model", part)},
        )
        return SpanSpec(parent=2, name="call_llm", attributes={**own, "gen_ai.system": ADK})

    told = adk(tool_call_args=ARGUMENTS, tool_response={"result": RESULT})
    empty = adk(llm_request="{}", llm_response="{}")
    used = {**tool("get_weather", "<not specified>"), **empty, **told}
    trace = trace_of(
        {NAME: "invocation"},
        {NAME: "agent_run [weather_agent]"},
        call({"function_call": {"name": "get_weather", "args": ARGUMENTS}}),
        SpanSpec(parent=2, name="execute_tool get_weather", attributes=used),
        call({"text": ANSWER}),
        scope=ADK,
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("weather_agent", "s-1")
    assert one_call(trace).id is None


def test_two_older_adk_calls_without_an_id_are_two_calls_and_emptied_ones_say_nothing() -> None:
    emptied = adk(tool_call_args="{}", tool_response="{}")
    used = {**tool("get_weather", "<not specified>"), **emptied}
    trace = trace_of({}, used, used, scope=ADK)

    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [(None, None, None)] * 2


def test_a_whole_trace_of_google_adk_gemini() -> None:
    """ADK 1.x: whole Gemini requests and responses."""
    declared = {"function_declarations": [{"name": "get_weather", "parameters": SCHEMA}]}
    config = {"system_instruction": "Be brief.", "tools": [declared]}

    def model(contents: Any, part: Any, given: int, came: int) -> dict[str, Any]:
        counts = {"prompt_token_count": given, "candidates_token_count": came}
        answer = {"content": content("model", part), "usage_metadata": counts}
        request = {"contents": contents, "config": config}
        own = adk(llm_request=request, llm_response=answer)
        return {"gen_ai.request.model": "gemini-2.0-flash", **own}

    asked = content("user", {"text": QUESTION})
    named = {"id": "c1", "name": "get_weather"}
    call = {"function_call": {**named, "args": ARGUMENTS}}
    result = {"function_response": {**named, "response": {"result": RESULT}}}
    history = [asked, content("model", call), content("user", result)]
    assert_whole_turn(
        scope=ADK,
        root_name="agent_run [helper]",
        root={},
        llm_name="call_llm",
        first=model([asked], call, 100, 10),
        tool_name="execute_tool get_weather",
        tool=adk(tool_call_args=ARGUMENTS, tool_response={"result": RESULT}),
        last=model(history, {"text": ANSWER}, 150, 20),
    )
