"""OpenInference's flattened messages, what they lose, and the frameworks under it that have shapes of their own."""

from dataclasses import replace
from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import ASKED, TOLD, assert_whole
from tests.support.openinference import SCOPE, asked, calls, chain, exchange, flat, llm, of
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    dump,
    one_call,
)


def test_a_result_of_other_arguments_is_not_taken() -> None:
    result = {"role": "tool", "content": "Oslo: dry"}
    trace = trace_of(
        exchange(1, "litellm", [USER], asked("Paris")),
        exchange(2, "litellm", [USER, asked("Oslo"), result], SAID),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, None, False)]


def test_token_counts_that_were_not_flattened_are_read_from_the_answer() -> None:
    answer: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    pieces = [dump({"choices": []}), dump(answer)]
    trace = trace_of(
        llm(1, "agno", flat("input", USER), output__value=dump(answer)),
        exchange(2, "agno", [USER], SAID, output__value=dump(pieces)),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_request_and_answer_are_read_where_nothing_was_flattened() -> None:
    """By instructor, portkey and older instrumentations."""

    def model(messages: list[Any], said: Any) -> dict[str, Any]:
        request = {"messages": messages, "tools": [{"function": {"name": "get_weather"}}]}
        answer = {"choices": [{"message": said}]}
        return of("LLM", input__value=dump(request), output__value=dump(answer))

    calls_it = model([USER], ASKED)
    trace = trace_of({}, calls_it, model([USER, ASKED, TOLD], SAID), scope=SCOPE + "portkey")

    assert_whole(trace)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_a_user_message_with_a_call_id_is_a_result_also_without_the_request() -> None:
    result = {"role": "user", "content": RESULT, "tool_call_id": "t0"}
    call = asked("Paris", ids=("t0",))
    trace = trace_of(
        exchange(1, "bedrock", [USER], call), exchange(2, "bedrock", [USER, call, result], SAID)
    )

    assert (trace.input, calls(trace)) == (QUESTION, [("get_weather", ARGUMENTS, RESULT, False)])


def test_a_call_without_arguments_is_one_of_a_tool_that_takes_none() -> None:
    """Flattening leaves out an empty object, unless attributes were lost anyway."""
    message = "llm.output_messages.0.message"
    attributes = {
        **of("LLM"),
        f"{message}.role": "assistant",
        f"{message}.tool_calls.0.tool_call.id": "c1",
        f"{message}.tool_calls.0.tool_call.function.name": "now",
    }

    (whole,) = trace_of(attributes).tool_calls
    (cut,) = trace_of(SpanSpec(id=1, attributes=attributes, dropped=1)).tool_calls

    assert (whole.arguments, cut.arguments) == ({}, None)


# --- agents and tools ------------------------------------------------------------------------------------------------


def weather(**own: Any) -> dict[str, Any]:
    return {NAME: "get_weather", **of("TOOL", tool__name="get_weather", **own)}


def test_a_beeai_tool_has_its_own_arguments() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"city": {}}}
    own = {
        "tool__description": "The weather.",
        "tool__json_schema": dump(schema),
        "input__value": dump({"input": ARGUMENTS, "options": None}),
        "output__value": RESULT,
    }
    trace = trace_of({}, weather(**own), scope="@arizeai/openinference-instrumentation-beeai")

    call = one_call(trace)
    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)
    (offered,) = trace.tools_offered
    assert offered.parameters == schema


def test_a_llama_index_tool_says_its_name_and_result_in_its_output() -> None:
    given, output = dump({"kwargs": ARGUMENTS}), {"tool_name": "get_weather", "raw_output": RESULT}
    came = dump({**output, "blocks": [{"block_type": "text", "text": RESULT}], "is_error": False})
    side = {"traceloop.entity.input": given, "traceloop.entity.output": came}
    for own in (
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "FunctionTool", **side},
        weather(input__value=given, output__value=came),
    ):
        trace = trace_of({}, {**own, NAME: "FunctionTool.tool"}, scope=SCOPE + "llama_index")

        call = one_call(trace)
        assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_the_frameworks_own_name_of_an_agent_is_before_the_instrumentations() -> None:
    named = of("AGENT", agent__name="strands_agent", gen_ai__agent__name="clerk")

    assert trace_of(named).agent == "clerk"


def test_a_workflow_around_an_agent_is_not_the_agent() -> None:
    outer, inner = (of("AGENT", agent__name=name) for name in ("Support workflow", "clerk"))

    assert trace_of(outer, inner).agent == "clerk"
    assert trace_of(outer).agent == "Support workflow"


# --- frameworks ------------------------------------------------------------------------------------------------------


def haystack(role: str, content: str, meta: str = "{}") -> str:
    return f"ChatMessage(_role=<ChatRole.{role.upper()}: '{role}'>, _content=[{content}], _name=None, _meta={meta})"


def used(given: int, came: int) -> str:
    return f"{{'usage': {{'prompt_tokens': {given}, 'completion_tokens': {came}}}}}"


CALL_REPR = "ToolCall(tool_name='get_weather', arguments={'city': 'Paris'}, id='c1', extra=None)"
TRANSCRIPT = [
    haystack("user", "TextContent(text='Hello')"),
    haystack("assistant", "ToolCall(tool_name='greet', arguments={}, id='c0', extra=None)"),
    haystack("user", f"TextContent(text='{QUESTION}')"),
    haystack("assistant", CALL_REPR, used(5, 1)),
    haystack("tool", f"ToolCallResult(result='{RESULT}', origin={CALL_REPR}, error=False)"),
    haystack("assistant", f"TextContent(text='{ANSWER}')", used(6, 2)),
]


def assert_haystack(trace: Trace) -> None:
    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]
    assert (trace.tokens.input, trace.tokens.output) == (11, 3)


def test_a_haystack_agent_tells_its_whole_run_in_one_span() -> None:
    sides = {"input__value": TRANSCRIPT[:3], "output__value": TRANSCRIPT}
    given = {key: dump({"messages": side}) for key, side in sides.items()}
    trace = trace_of(chain("haystack", "Agent.run", **given))

    assert_haystack(trace)
    assert trace.is_turn


def test_a_haystack_agent_around_model_calls_is_only_their_sum() -> None:
    def call(number: int, end: int, counts: tuple[int, int], said: dict[str, Any]) -> SpanSpec:
        given = {
            "input.value": dump({"messages": TRANSCRIPT[:end]}),
            "output.value": dump({"replies": TRANSCRIPT[end : end + 1]}),
            "llm.token_count.prompt": counts[0],
            "llm.token_count.completion": counts[1],
        }
        return exchange(number, "haystack", [{"role": "user"}], said, **given)

    around = chain("haystack", "Agent.run", output__value=dump({"messages": TRANSCRIPT}))
    spans = [call(1, 3, (5, 1), asked("Paris")), call(2, 5, (6, 2), SAID)]
    steps = {"haystack.agent.max_steps": 5}
    own = SpanSpec(id=9, parent=1, attributes=steps, end=99, scope="haystack")

    within = [replace(each, parent=9) for each in spans]
    for trace in (trace_of(around, *spans), trace_of(around, own, *within)):
        assert_haystack(trace)
        assert len(trace.model_calls) == 2


def crew(**more: Any) -> SpanSpec:
    agents = [{"role": "Guide", "tools_names": ["get_weather"]}]
    return chain("crewai", "Crew.kickoff", crew_agents=dump(agents), output__value=ANSWER, **more)


TASK = [{"description": QUESTION}]


@for_each(
    "inputs,tasks,question",
    [("", TASK, QUESTION), (dump({"q": QUESTION}), [], QUESTION), ("", TASK * 2, None)],
)
def test_an_older_crew_is_asked_by_its_inputs_or_its_only_task(
    inputs: str, tasks: list[Any], question: str | None
) -> None:
    assert trace_of(crew(crew_inputs=inputs, crew_tasks=dump(tasks))).input == question


def test_an_observation_of_dspy_that_failed_is_a_failed_call() -> None:
    failed = "Failed to execute: no such city"
    step = {"tool_name_0": "get_weather", "tool_args_0": dump(ARGUMENTS), "observation_0": failed}
    asks = dspy_fields(next_tool_name="get_weather", next_tool_args=dump(ARGUMENTS))
    sent = [{"role": "user", "content": dspy_fields(question=QUESTION, **step)}]
    trace = trace_of(
        exchange(1, "dspy", [USER], {"role": "assistant", "content": asks}),
        exchange(2, "dspy", sent, SAID),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, failed, True)]


def dspy_fields(**fields: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items())


@for_each("text", [dspy_fields(next_thought="Look.", next_tool_name="get_wea"), "next_tool_name"])
def test_an_answer_of_dspy_that_was_cut_asks_for_nothing(text: str) -> None:
    said = {"role": "assistant", "content": text}

    assert not trace_of(exchange(1, "dspy", [USER], said)).tool_calls


def test_the_repr_of_an_object_is_no_answer_where_a_model_gave_one() -> None:
    cut = "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'a..."
    root = chain("llama_index", "FunctionAgent.run", output__value=cut)

    assert trace_of(root, exchange(1, "llama_index", [USER], SAID)).output == ANSWER
    assert trace_of(root).output == cut


def test_an_answer_that_is_only_the_reprs_of_its_tool_calls() -> None:
    function = "Function(arguments='{\"city\": \"Paris\"}', name='get_weather')"
    call = f"ToolCall(id='c1', function={function}, type='function')"
    model = llm(0, "llama_index", flat("input", USER), output__value=dump({"tool_calls": [call]}))
    tool = {NAME: "function_call", **of("TOOL", tool__name="get_weather")}
    trace = trace_of(model, {}, {}, {}, tool, scope=SCOPE + "llama_index")

    assert calls(trace) == [("get_weather", ARGUMENTS, None, False)]


def test_llama_index_preparing_a_request_calls_no_model() -> None:
    prepared = llm(1, "llama_index", output__value=dump({"messages": [], "tools": []}))
    named = replace(prepared, name="OpenAI._prepare_chat_with_tools")
    real = exchange(2, "llama_index", [USER], SAID)

    assert len(trace_of(chain("llama_index"), named, real).model_calls) == 1


def test_an_event_of_a_beeai_tool_is_no_call_of_its_own() -> None:
    def tool(number: int, parent: int, name: str, **attributes: Any) -> SpanSpec:
        given = of("TOOL", input__value=dump({"input": ARGUMENTS, "options": None}), **attributes)
        place: dict[str, Any] = {"id": number, "parent": parent, "status": 2}
        return SpanSpec(name=name, scope=SCOPE + "beeai", attributes=given, **place)

    trace = trace_of(
        tool(1, 0, "get_weather", tool__name="get_weather"),
        tool(2, 1, "error", metadata__path="tool.custom.get_weather.error"),
    )

    found = [(call.name, call.arguments) for call in trace.tool_calls]
    assert found == [("get_weather", ARGUMENTS)]


def test_instructor_alone_is_a_model_call() -> None:
    made = {
        "llm__model_name": "m",
        "input__value": dump([USER]),
        "output__value": dump({"name": "Ada", "age": 36}),
    }
    trace = trace_of(chain("instructor", "instructor.create", **made))

    assert (trace.input, trace.output) == (QUESTION, '{"name":"Ada","age":36}')
    assert len(trace.model_calls) == 1


def test_an_autogen_team_says_its_answer_in_its_messages() -> None:
    def message(source: str, kind: str, content: Any) -> dict[str, Any]:
        return {"source": source, "type": kind, "content": content}

    call = {"id": "c1", "name": "get_weather", "arguments": dump(ARGUMENTS)}
    result = {"content": RESULT, "name": "get_weather", "call_id": "c1", "is_error": False}
    messages = [
        message("user", "TextMessage", QUESTION),
        message("guide", "ToolCallRequestEvent", [call]),
        message("guide", "ToolCallExecutionEvent", [result]),
        message("guide", "TextMessage", ANSWER),
    ]
    run = {
        "input__value": dump({"task": QUESTION}),
        "output__value": dump({"messages": messages, "stop_reason": None}),
    }
    trace = trace_of(chain("autogen_agentchat", "RoundRobinGroupChat.run_stream", **run))

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
