"""Backends and gateways that export spans of their own."""

from typing import Any

from evaluators.model import ToolCall, Trace
from tests.support.conventions import asked
from tests.support.dialect_spans import NAME, SpanSpec, span_id, trace_of, under
from tests.support.openai_messages import ASKED, CALL, FUNCTION, TOLD, assert_whole
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    compact,
    dump,
    one_call,
)

# --- Langfuse --------------------------------------------------------------------------------------------------------


def observed(kind: str, name: str = "", **own: Any) -> dict[str, Any]:
    return {NAME: name, **under("langfuse.observation.", type=kind, **own)}


def generation(given: list[Any], came: Any = None) -> dict[str, Any]:
    """A text as it is; what is no text as JSON."""
    output = {} if came is None else {"output": came if isinstance(came, str) else compact(came)}
    return observed("generation", "OpenAI", input=compact(given), **output)


def in_turn(*spans: dict[str, Any]) -> Trace:
    return trace_of({NAME: "turn"}, *spans, scope="langfuse-sdk")


def test_parallel_calls_take_the_spans_of_their_own_arguments() -> None:
    results = {"Rome": "sunny", "Paris": RESULT}
    other = {"id": "c2", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    both = {"role": "assistant", "tool_calls": [CALL, other]}
    ran = (
        observed("span", "get_weather", input=compact({"kwargs": {"city": city}}), output=result)
        for city, result in results.items()
    )

    trace = in_turn(generation([USER], both), *ran)

    found = {call.arguments["city"]: call.result for call in trace.tool_calls}
    assert found == results


NAMELESS = generation([USER], {"role": "assistant", "tool_calls": [{"function": FUNCTION}]})


def test_a_nameless_call_is_found_once_though_another_answer_is_missing() -> None:
    assert one_call(in_turn(NAMELESS, generation([USER, ASKED, TOLD]))).result == RESULT


def test_a_plain_text_is_an_answer_so_no_history_is_searched_for_its_calls() -> None:
    spans = generation([USER], "Wait."), generation([USER, ASKED, TOLD], ANSWER)

    assert in_turn(*spans).tool_calls == ()


# --- LangSmith -------------------------------------------------------------------------------------------------------


def run(kind: str, given: Any = None, came: Any = None, **more: Any) -> dict[str, Any]:
    """The attributes of a run, with its sides as JSON where it has them."""
    sides = {"gen_ai.prompt": given, "gen_ai.completion": came}
    said = {key: dump(side) for key, side in sides.items() if side is not None}
    return {"langsmith.span.kind": kind, **said, **more}


def test_langsmith_exports_its_runs() -> None:
    name = "AgentExecutor"
    ids = {"langsmith.trace.name": name, "langsmith.metadata.session_id": "s-1"}
    trace = trace_of(
        {NAME: name, **run("chain", {"input": QUESTION}, {"output": ANSWER}, **ids)},
        {NAME: "get_weather", **run("tool", {"input": str(ARGUMENTS)}, {"output": RESULT})},
        scope="langsmith",
    )

    assert_whole(trace)
    assert trace.session_id == "s-1"


def test_langsmith_exports_the_messages_of_langchain() -> None:
    def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
        path = ["langchain", "schema", "messages", kind]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}

    def generations(**kwargs: Any) -> dict[str, Any]:
        return {"generations": [[{"text": "", "message": lc("AIMessage", **kwargs)}]]}

    call = {"name": "get_weather", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
    human = lc("HumanMessage", content=QUESTION)
    sent = {"messages": [[lc("SystemMessage", content="Be brief."), human]]}
    told = {"output": {"type": "tool", "content": RESULT, "tool_call_id": "c1"}}
    trace = trace_of(
        run("chain", {"messages": [human]}),
        run("llm", sent, generations(content="", tool_calls=[call])),
        {NAME: "get_weather", **run("tool", {"input": str(ARGUMENTS)}, told)},
        run("llm", came=generations(content=ANSWER), **{"gen_ai.usage.input_tokens": 5}),
        scope="langsmith",
    )

    assert_whole(trace)
    assert (trace.system, trace.tokens.input) == ("Be brief.", 5)
    assert one_call(trace).id == "c1"


# --- LangWatch -------------------------------------------------------------------------------------------------------


COUNTED = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"bay": 4}'}}


def typed(kind: str, value: Any) -> str:
    return dump({"type": kind, "value": value})


def langwatch(name: str, kind: str, metadata: str = "{}", **more: Any) -> dict[str, Any]:
    own = under("langwatch.", span__type=kind, **more)
    return {NAME: name, "metadata": metadata, **own}


def test_the_state_of_a_graph_under_langwatch_is_of_this_turn_and_names_the_agent() -> None:
    state: list[dict[str, Any]] = [
        {"content": "And before?", "id": "m1"},
        {"content": "", "tool_calls": [{**COUNTED, "id": "c0"}], "response_metadata": {}},
        {"content": "3", "tool_call_id": "c0", "name": "count"},
        {"content": QUESTION, "id": "m2"},
    ]
    said = typed("json", {"messages": state})
    chain = under("langwatch.", span__type="chain", input=said)
    trace = trace_of(
        langwatch("turn", "span", input=typed("text", QUESTION)),
        langwatch("clerk", "chain", output=said),
        SpanSpec(parent=2, name="model", attributes=chain),
    )

    assert (trace.agent, trace.tool_calls) == ("clerk", ())


def test_a_result_under_langwatch_has_a_role_that_is_unknown() -> None:
    result = typed("chat_messages", [{"role": "unknown", "content": "12"}])

    assert one_call(trace_of(langwatch("count", "tool", output=result))).result == "12"


# --- LiteLLM's own spans, and those of the raw request ---------------------------------------------------------------


TYPES = ("completion", "acompletion", "responses", "aresponses", "anthropic_messages")


def litellm(call_type: str, **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "parts": [], "tool_calls": [CALL], "finish_reason": "tool_calls"}
    own = {
        "request.model": "gpt-4o",
        "system": "openai",
        "response.id": "chatcmpl-1",
        "operation.name": "chat" if call_type == "completion" else call_type,
        "usage.input_tokens": 11,
        "usage.output_tokens": 4,
        "cost.total_cost": 0.002,
        "input.messages": asked(QUESTION),
        "output.messages": dump([said]),
        "completion.0.function_call.name": "get_weather",
        "completion.0.function_call.arguments": dump(ARGUMENTS),
    }
    return {
        **under("gen_ai.", **own | more),
        "llm.request.type": call_type,
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": dump({"type": "object"}),
        "metadata.user_api_key_hash": "x",
    }


@for_each("call_type", TYPES)
def test_litellm_calls_of_every_type_are_model_calls_and_counted_once(call_type: str) -> None:
    trace = trace_of(
        {NAME: "Received Proxy Server Request", **litellm(call_type)},
        {NAME: "litellm_request", **litellm(call_type)},
        SpanSpec(parent=2, name="raw_gen_ai_request", attributes={"llm.openai.id": "x"}),
    )

    assert (trace.input, len(trace.model_calls)) == (QUESTION, 1)
    assert (trace.tokens.input, trace.tokens.output, trace.cost_usd) == (11, 4, 0.002)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    call = one_call(trace)
    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)


def test_litellms_raw_request_has_the_calls_that_its_own_span_loses() -> None:
    def pair(number: int, messages: list[Any], said: dict[str, Any]) -> tuple[SpanSpec, SpanSpec]:
        outer = {
            "request.model": "gpt-4o",
            "response.id": f"r{number}",
            "prompt.0.role": "user",
            "prompt.0.content": QUESTION,
            "completion.0.role": "assistant",
            "usage.prompt_tokens": 7,
            "usage.completion_tokens": 2,
        }
        choices = repr([{"index": 0, "message": said}])
        raw = under("llm.openai.", id=f"r{number}", messages=repr(messages), choices=choices)
        when: dict[str, Any] = {"start": number, "end": number + 1}
        return (
            SpanSpec(attributes=under("gen_ai.", **outer), **when),
            SpanSpec(parent=number, attributes=raw, **when),
        )

    first, last = pair(2, [USER], ASKED), pair(4, [USER, ASKED, TOLD], SAID)
    trace = trace_of({NAME: "turn"}, *first, *last, scope="litellm")

    assert_whole(trace)
    assert (trace.tokens.input, len(trace.model_calls)) == (14, 2)


@for_each(
    "given,source",
    [("chat-7", "litellm.trace_id"), ("0a4f04d4-6b5d-4d0f-9c55-0b2a5f4b6f0e", "trace")],
)
def test_a_litellm_session_is_what_the_caller_gave_not_a_generated_id(
    given: str, source: str
) -> None:
    assert trace_of({"litellm.trace_id": given}, scope="litellm").session_source == source


# --- logfire before version 5, and its spans of the Agents SDK -------------------------------------------------------


COMPLETION = "Chat Completion with {request_data[model]!r}"


def logfire(title: str, request: Any, response: Any = None) -> dict[str, Any]:
    """A span with the request and the answer that it wraps."""
    answer = {} if response is None else {"response_data": compact(response)}
    return {NAME: title, "request_data": compact(request), **answer}


def by_logfire(*spans: dict[str, Any], scope: str = "logfire.openai") -> Trace:
    return trace_of({NAME: "turn"}, *spans, scope=scope)


def test_a_streamed_logfire_call_is_one_call() -> None:
    request = {"messages": [USER], "stream": True}
    streamed = "streaming response from {request_data[model]!r} took {duration:.2f}s"
    answer = {"combined_chunk_content": ANSWER, "chunk_count": 3}
    trace = by_logfire(logfire(COMPLETION, request), logfire(streamed, request, answer))

    assert (trace.input, trace.output, len(trace.model_calls)) == (QUESTION, ANSWER, 1)


def test_logfires_responses_are_events_with_the_answer_last() -> None:
    asked = {"event.name": "gen_ai.user.message", **USER}
    said = {"event.name": "gen_ai.assistant.message", **SAID}
    former = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Hello."}
    events = compact([former, asked, said])
    trace = trace_of({NAME: "Responses API", "events": events}, scope="logfire.openai")

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_an_error_of_logfires_agents_sdk_is_in_its_data() -> None:
    failure = {"message": "Error running tool", "data": {"error": "timed out"}}
    ran = {"name": "get_weather", "input": compact(ARGUMENTS), "error": compact(failure)}
    trace = trace_of({NAME: "Function: {name}", **ran}, scope="logfire.openai_agents")

    assert (one_call(trace).arguments, one_call(trace).error) == (ARGUMENTS, "timed out")


def test_a_group_of_another_instrumentation_is_no_session() -> None:
    assert trace_of({NAME: "consume", "group_id": "billing"}).session_source == "trace"


# --- MLflow, 2 and 3, and the frameworks whose methods it traces -----------------------------------------------------


MLFLOW = "mlflow.tracing.provider"


def mlflow(kind: str, given: Any = None, came: Any = None, **more: Any) -> dict[str, Any]:
    """The attributes of a span, as JSON; its inputs and outputs where it has them."""
    sides = {"spanInputs": given, "spanOutputs": came}
    own = {"spanType": kind} | {key: side for key, side in sides.items() if side is not None}
    values = {f"mlflow.{key}": compact(value) for key, value in own.items()}
    return values | {key: compact(value) for key, value in more.items()}


def chosen(message: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message}], **more}


OF_AGENT = mlflow("AGENT", {"question": QUESTION})
MESSAGES = {"messages": [USER]}


def test_mlflow_2_tokens_are_those_of_the_answer_or_of_its_last_chunk() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    value = compact({"choices": [], "usage": usage})
    chunk = ("mlflow.chunk.item.3", {"mlflow.chunk.value": value})
    trace = trace_of(
        OF_AGENT,
        mlflow("CHAT_MODEL", MESSAGES, chosen(SAID, usage=usage)),
        SpanSpec(attributes=mlflow("CHAT_MODEL", MESSAGES), events=[chunk]),
        scope=MLFLOW,
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_a_dspy_tool_under_mlflow_says_its_name_and_parameters_apart() -> None:
    own = mlflow("TOOL", ARGUMENTS, name="get_weather", description="Weather.", args={})
    trace = trace_of({NAME: "Tool.get_weather", **own})

    assert one_call(trace).name == "get_weather"
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_an_mlflow_agent_that_says_only_its_outputs_type_has_no_answer() -> None:
    silent = {**mlflow("AGENT", None, {"output_type": "str"}), "mlflow.spanInputs": "null"}
    trace = trace_of(silent, mlflow("CHAT_MODEL", [USER], chosen(SAID)), scope=MLFLOW)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_pydantic_ai_under_mlflow_has_spans_named_for_its_methods() -> None:
    def message(kind: str, part: str, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "parts": [{"part_kind": part, **more}]}

    def span(title: str, given: Any, came: Any, **more: Any) -> dict[str, Any]:
        return {NAME: title, **mlflow("UNKNOWN", given, came, **more)}

    of = {"tool_name": "get_weather", "tool_call_id": "c1"}
    asked = message("request", "user-prompt", content=QUESTION)
    requested = message("response", "tool-call", args=compact(ARGUMENTS), **of)
    returned = message("request", "tool-return", content=RESULT, **of)
    answered = message("response", "text", content=ANSWER)
    usage = {"mlflow.chat.tokenUsage": {"input_tokens": 7, "output_tokens": 2}}
    method = "InstrumentedModel.request"
    trace = trace_of(
        span("Agent.run", {"user_prompt": QUESTION}, {"output": ANSWER}, name="helper"),
        span(method, {"messages": [asked]}, requested, **usage),
        span("ToolManager.handle_call", {"call": requested["parts"][0]}, RESULT),
        span(method, {"messages": [asked, requested, returned]}, answered, **usage),
    )

    assert_whole(trace)
    assert (trace.agents, trace.tokens.input) == (("helper",), 14)
    assert (one_call(trace).id, one_call(trace).span_id) == ("c1", span_id(3))


# --- Laminar, and OpenHands, which is traced with it -----------------------------------------------------------------


SESSION = "lmnr.association.properties.session_id"


def laminar(kind: str, name: str, **sides: Any) -> dict[str, Any]:
    own = {side: compact(value) for side, value in sides.items()}
    return {NAME: name, SESSION: "s-1", **under("lmnr.span.", type=kind, **own)}


def acted(name: str, action: dict[str, Any], output: dict[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of a conversation with one action of OpenHands."""
    tool = laminar("TOOL", name, input={"action": {**action, "kind": name}}, output=output)
    return trace_of(laminar("DEFAULT", "conversation"), tool).tool_calls


@for_each("code,is_error,failed", [(0, False, False), (1, False, True), (0, True, True)])
def test_an_action_of_openhands_is_its_tool(code: int, is_error: bool, failed: bool) -> None:
    action = {"command": "cat notes", "is_input": False, "timeout": None}
    output = {
        "content": [{"type": "text", "text": "no such file"}],
        "is_error": is_error,
        "exit_code": code,
        "metadata": {"exit_code": code, "working_dir": "/srv"},
    }

    (call,) = acted("TerminalAction", action, output)

    assert (call.name, call.arguments) == ("terminal", {"command": "cat notes"})
    assert str(call.result).startswith("no such file\n[Current working directory: /srv]")
    assert (call.error is not None) is failed


def test_the_action_of_a_servers_tool_does_not_name_it() -> None:
    assert acted("MCPToolAction", {"data": ARGUMENTS}, {"content": []}) == ()
