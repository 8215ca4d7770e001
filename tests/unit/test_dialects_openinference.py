"""OpenInference instrumentations and versions that flatten less, or otherwise: the smallest span of each shape."""

from __future__ import annotations

import json
from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import Made, trace_of

QUESTION = "Is it raining in Paris?"
ANSWER = "Yes, it rains."
RESULT = "rainy, 14 C"
ARGUMENTS = {"city": "Paris"}
SCOPE = "openinference.instrumentation."


def dump(value: Any) -> str:
    return json.dumps(value)


def flat(side: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {
        f"llm.{side}_messages.{n}.message.{key}": value
        for n, message in enumerate(messages)
        for key, value in message.items()
    }


def asked(*cities: str, ids: tuple[str, ...] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    for n, city in enumerate(cities):
        call = f"tool_calls.{n}.tool_call."
        message[f"{call}function.name"] = "get_weather"
        message[f"{call}function.arguments"] = dump({"city": city})
        if ids:
            message[f"{call}id"] = ids[n]
    return message


def llm(number: int, library: str, *parts: dict[str, Any], **more: Any) -> Made:
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM", **more}
    for part in parts:
        attributes |= part
    return Made(
        id=number + 1,
        parent=1,
        name="call",
        scope=SCOPE + library,
        attributes=attributes,
        start=number * 10,
        end=number * 10 + 5,
    )


def chain(library: str, name: str = "run", **attributes: Any) -> Made:
    kind = {"openinference.span.kind": "CHAIN"}
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    return Made(id=1, name=name, scope=SCOPE + library, attributes=kind | given, end=99)


def calls(trace: Trace) -> list[tuple[str, Any, Any, bool]]:
    return [(c.name, c.arguments, c.result, c.error is not None) for c in trace.tool_calls]


USER = {"role": "user", "content": QUESTION}
SAID = {"role": "assistant", "content": ANSWER}


# --- tool results that lost their call ------------------------------------------------------------------------------


def test_results_without_an_id_answer_the_calls_before_them_in_order() -> None:
    results = [{"role": "tool", "content": f"{city}: dry"} for city in ("Rome", "Oslo")]
    trace = trace_of(
        llm(1, "litellm", flat("input", USER), flat("output", asked("Rome", "Oslo"))),
        llm(
            2, "litellm", flat("input", USER, asked("Rome", "Oslo"), *results), flat("output", SAID)
        ),
    )

    assert calls(trace) == [
        ("get_weather", {"city": "Rome"}, "Rome: dry", False),
        ("get_weather", {"city": "Oslo"}, "Oslo: dry", False),
    ]


def test_results_of_former_turns_answer_no_call_of_this_one() -> None:
    before = [
        {"role": "user", "content": "And in Rome?"},
        asked("Rome"),
        {"role": "tool", "name": "get_weather", "content": "Rome: dry"},
    ]
    now = [USER, asked("Paris"), {"role": "tool", "name": "get_weather", "content": RESULT}]
    trace = trace_of(
        llm(1, "mistralai", flat("input", *before, USER), flat("output", asked("Paris"))),
        llm(2, "mistralai", flat("input", *before, *now), flat("output", SAID)),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]


def test_a_result_flattened_over_another_is_read_from_the_request() -> None:
    use = [
        {"type": "tool_use", "id": f"t{n}", "name": "get_weather", "input": {"city": city}}
        for n, city in enumerate(("Rome", "Oslo"))
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": text, "is_error": n == 1}
        for n, text in enumerate(("Rome: dry", "no such city"))
    ]
    request = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": use},
        {"role": "user", "content": results},
    ]
    trace = trace_of(
        llm(1, "anthropic", flat("input", USER), flat("output", asked("Rome", "Oslo"))),
        llm(
            2,
            "anthropic",
            flat(
                "input",
                USER,
                asked("Rome", "Oslo", ids=("t0", "t1")),
                {"role": "user", "content": "no such city", "tool_call_id": "t1"},
            ),
            flat("output", SAID),
            **{"input.value": dump({"model": "m", "messages": request})},
        ),
    )

    assert trace.input == QUESTION
    assert calls(trace) == [
        ("get_weather", {"city": "Rome"}, "Rome: dry", False),
        ("get_weather", {"city": "Oslo"}, "no such city", True),
    ]


def test_a_user_message_with_a_call_id_is_a_result_also_without_the_request() -> None:
    result = {"role": "user", "content": RESULT, "tool_call_id": "t0"}
    trace = trace_of(
        llm(1, "bedrock", flat("input", USER), flat("output", asked("Paris", ids=("t0",)))),
        llm(
            2,
            "bedrock",
            flat("input", USER, asked("Paris", ids=("t0",)), result),
            flat("output", SAID),
        ),
    )

    assert (trace.input, calls(trace)) == (QUESTION, [("get_weather", ARGUMENTS, RESULT, False)])


def test_a_result_of_other_arguments_is_not_taken() -> None:
    result = {"role": "tool", "content": "Oslo: dry"}
    trace = trace_of(
        llm(1, "litellm", flat("input", USER), flat("output", asked("Paris"))),
        llm(2, "litellm", flat("input", USER, asked("Oslo"), result), flat("output", SAID)),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, None, False)]


def test_gemini_parts_that_were_not_flattened_are_read_from_their_reprs() -> None:
    call = "FunctionCall(id=None, args={'city': 'Paris'}, name='get_weather')"
    given = "FunctionResponse(id=None, name='get_weather', response={'error': 'no such city'})"
    contents = [
        f"parts=[Part(function_call=None, text='{QUESTION}')] role='user'",
        f"parts=[Part(function_call={call}, text=None)] role='model'",
        f"parts=[Part(function_call=None, function_response={given}, text=None)] role='user'",
    ]
    trace = trace_of(
        llm(1, "google_genai", flat("input", USER), flat("output", asked("Paris"))),
        llm(
            2,
            "google_genai",
            flat("input", USER, {"role": "model"}, {"role": "user"}),
            flat("output", SAID),
            **{"input.value": dump({"model": "m", "contents": contents})},
        ),
    )

    assert trace.input == QUESTION
    assert calls(trace) == [("get_weather", ARGUMENTS, "no such city", True)]


# --- what stands in the answer only -------------------------------------------------------------------------------


def test_token_counts_that_were_not_flattened_are_read_from_the_answer() -> None:
    answer: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    pieces = [dump({"choices": []}), dump(answer)]
    trace = trace_of(
        llm(1, "agno", flat("input", USER), **{"output.value": dump(answer)}),
        llm(2, "agno", flat("input", USER), flat("output", SAID), **{"output.value": dump(pieces)}),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_functions_that_gemini_called_by_itself_are_calls() -> None:
    def parts(role: str, part: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "parts": [part]}

    called = {"function_call": {"name": "get_weather", "args": ARGUMENTS}}
    given = {"function_response": {"name": "get_weather", "response": {"result": RESULT}}}
    history = [
        parts("user", {"text": "Hello"}),
        parts("model", {"function_call": {"name": "greet", "args": {}}}),
        parts("user", {"text": QUESTION}),
        parts("model", called),
        parts("user", given),
    ]
    answer = {
        "candidates": [{"content": parts("model", {"text": ANSWER})}],
        "automatic_function_calling_history": history,
    }
    trace = trace_of(
        llm(
            1,
            "google_genai",
            flat("input", USER),
            flat("output", SAID),
            **{"output.value": dump(answer)},
        )
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert calls(trace) == [("get_weather", ARGUMENTS, {"result": RESULT}, False)]


# --- Haystack -----------------------------------------------------------------------------------------------------


def haystack(role: str, content: str, meta: str = "{}") -> str:
    return f"ChatMessage(_role=<ChatRole.{role.upper()}: '{role}'>, _content=[{content}], _name=None, _meta={meta})"


CALL = "ToolCall(tool_name='get_weather', arguments={'city': 'Paris'}, id='c1', extra=None)"
TRANSCRIPT = [
    haystack("user", "TextContent(text='Hello')"),
    haystack("assistant", "ToolCall(tool_name='greet', arguments={}, id='c0', extra=None)"),
    haystack("user", f"TextContent(text='{QUESTION}')"),
    haystack("assistant", CALL, "{'usage': {'prompt_tokens': 5, 'completion_tokens': 1}}"),
    haystack("tool", f"ToolCallResult(result='{RESULT}', origin={CALL}, error=False)"),
    haystack(
        "assistant",
        f"TextContent(text='{ANSWER}')",
        "{'usage': {'prompt_tokens': 6, 'completion_tokens': 2}}",
    ),
]


def assert_haystack(trace: Trace) -> None:
    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]
    assert (trace.tokens.input, trace.tokens.output) == (11, 3)


def test_a_haystack_agent_tells_its_whole_run_in_one_span() -> None:
    trace = trace_of(
        chain(
            "haystack",
            "Agent.run",
            input__value=dump({"messages": TRANSCRIPT[:3]}),
            output__value=dump({"messages": TRANSCRIPT}),
        )
    )

    assert_haystack(trace)
    assert trace.is_turn


def test_a_haystack_agent_around_model_calls_is_only_their_sum() -> None:
    def call(number: int, end: int, counts: tuple[int, int], said: dict[str, Any]) -> Made:
        return llm(
            number,
            "haystack",
            flat("input", {"role": "user"}),
            flat("output", said),
            **{
                "input.value": dump({"messages": TRANSCRIPT[:end]}),
                "output.value": dump({"replies": TRANSCRIPT[end : end + 1]}),
                "llm.token_count.prompt": counts[0],
                "llm.token_count.completion": counts[1],
            },
        )

    trace = trace_of(
        chain("haystack", "Agent.run", output__value=dump({"messages": TRANSCRIPT})),
        call(1, 3, (5, 1), asked("Paris")),
        call(2, 5, (6, 2), SAID),
    )

    assert_haystack(trace)
    assert len(trace.model_calls) == 2


# --- other frameworks ---------------------------------------------------------------------------------------------


def crew(**more: Any) -> Made:
    agents = [{"role": "Guide", "tools_names": ["get_weather"]}]
    return chain("crewai", "Crew.kickoff", crew_agents=dump(agents), output__value=ANSWER, **more)


def test_an_older_crew_is_asked_by_its_inputs_or_its_only_task() -> None:
    task = [{"description": QUESTION}]

    assert trace_of(crew(crew_inputs="", crew_tasks=dump(task))).input == QUESTION
    assert trace_of(crew(crew_inputs=dump({"q": QUESTION}), crew_tasks="[]")).input == QUESTION
    assert trace_of(crew(crew_inputs="", crew_tasks=dump(task * 2))).input is None


def test_an_older_crew_names_its_tools_and_the_call_that_it_parsed() -> None:
    given = {
        "tool_string": "Action: get_weather",
        "tool": "CrewStructuredTool(name='get_weather', description='x: {'a': 1}')",
        "calling": "tool_name='get_weather' arguments={'city': 'Paris'}",
    }
    tool = Made(
        id=2,
        parent=1,
        name="ToolUsage._use",
        scope=SCOPE + "crewai",
        attributes={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "input.value": dump(given),
            "output.value": RESULT,
        },
    )
    trace = trace_of(crew(), tool)

    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def dspy_fields(**fields: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items())


def test_dspy_asks_for_tools_in_the_text_of_its_answers() -> None:
    system = (
        "Tool Name can be:\n\n(1) get_weather, whose description is <desc>Looks.</desc>. It takes"
        " arguments {'city': 'str'} in JSON format.\n(2) finish, whose description is <desc>x</desc>."
    )
    first = dspy_fields(
        next_thought="Look.", next_tool_name="get_weather", next_tool_args=dump(ARGUMENTS)
    )
    told = dspy_fields(
        question=QUESTION,
        trajectory="",
        thought_0="Look.",
        tool_name_0="get_weather",
        tool_args_0=dump(ARGUMENTS),
        observation_0="Failed to execute: no such city",
    )
    told += "\n\nRespond with the corresponding output fields, starting with `[[ ## next_thought ## ]]`."
    last = dspy_fields(next_thought="Done.", next_tool_name="finish", next_tool_args="{}")
    prompt = {"role": "system", "content": system}
    prediction = f"Prediction(\n    reasoning='So.',\n    answer='{ANSWER}'\n)"
    trace = trace_of(
        chain(
            "dspy",
            "ReAct.forward",
            input__value=dump({"input_args": {"question": QUESTION}}),
            output__value=dump(prediction),
        ),
        llm(
            1,
            "dspy",
            flat("input", prompt, USER),
            flat("output", {"role": "assistant", "content": first}),
        ),
        llm(
            2,
            "dspy",
            flat("input", prompt, {"role": "user", "content": told}),
            flat("output", {"role": "assistant", "content": last}),
        ),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert calls(trace) == [("get_weather", ARGUMENTS, "Failed to execute: no such city", True)]
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_an_answer_of_dspy_that_was_cut_asks_for_nothing() -> None:
    cut = dspy_fields(next_thought="Look.", next_tool_name="get_wea")
    said = flat("output", {"role": "assistant", "content": cut})
    plain = flat("output", {"role": "assistant", "content": "next_tool_name"})

    assert not trace_of(llm(1, "dspy", flat("input", USER), said)).tool_calls
    assert not trace_of(llm(1, "dspy", flat("input", USER), plain)).tool_calls


def test_the_repr_of_an_object_is_no_answer_where_a_model_gave_one() -> None:
    cut = "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'a..."
    root = chain("llama_index", "FunctionAgent.run", output__value=cut)
    trace = trace_of(root, llm(1, "llama_index", flat("input", USER), flat("output", SAID)))

    assert trace.output == ANSWER
    assert trace_of(root).output == cut


def test_an_answer_that_is_only_the_reprs_of_its_tool_calls() -> None:
    function = "Function(arguments='{\"city\": \"Paris\"}', name='get_weather')"
    call = f"ToolCall(id='c1', function={function}, type='function')"
    tool = Made(
        id=9,
        parent=1,
        name="function_call",
        scope=SCOPE + "llama_index",
        attributes={"openinference.span.kind": "TOOL", "tool.name": "get_weather"},
        start=7,
        end=8,
    )
    trace = trace_of(
        llm(
            0, "llama_index", flat("input", USER), **{"output.value": dump({"tool_calls": [call]})}
        ),
        tool,
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, None, False)]


def test_llama_index_preparing_a_request_calls_no_model() -> None:
    prepared = llm(1, "llama_index", **{"output.value": dump({"messages": [], "tools": []})})
    real = llm(2, "llama_index", flat("input", USER), flat("output", SAID))
    named = Made(
        id=2,
        parent=1,
        name="OpenAI._prepare_chat_with_tools",
        scope=prepared.scope,
        attributes=prepared.attributes,
    )

    assert len(trace_of(chain("llama_index"), named, real).model_calls) == 1


def test_smolagents_names_its_tools_on_the_agents_span() -> None:
    agent = Made(
        id=1,
        name="CodeAgent.run",
        scope=SCOPE + "smolagents",
        attributes={
            "openinference.span.kind": "AGENT",
            "smolagents.tools_names": ["get_weather", "final_answer"],
        },
    )

    assert "get_weather" in [tool.name for tool in trace_of(agent).tools_offered]


def test_an_event_of_a_beeai_tool_is_no_call_of_its_own() -> None:
    def tool(number: int, parent: int, name: str, **attributes: Any) -> Made:
        kind = {
            "openinference.span.kind": "TOOL",
            "input.value": dump({"input": ARGUMENTS, "options": None}),
        }
        return Made(
            id=number,
            parent=parent,
            name=name,
            scope=SCOPE + "beeai",
            attributes=kind | attributes,
            status=2,
        )

    trace = trace_of(
        tool(1, 0, "get_weather", **{"tool.name": "get_weather"}),
        tool(2, 1, "error", **{"metadata.path": "tool.custom.get_weather.error"}),
    )

    assert [(call.name, call.arguments) for call in trace.tool_calls] == [
        ("get_weather", ARGUMENTS)
    ]


def test_instructor_alone_is_a_model_call() -> None:
    made = chain(
        "instructor",
        "instructor.create",
        llm__model_name="m",
        input__value=dump([{"role": "user", "content": QUESTION}]),
        output__value=dump({"name": "Ada", "age": 36}),
    )
    trace = trace_of(made)

    assert (trace.input, trace.output, len(trace.model_calls)) == (
        QUESTION,
        '{"name":"Ada","age":36}',
        1,
    )


def test_an_autogen_team_says_its_answer_in_its_messages() -> None:
    messages = [
        {"source": "user", "type": "TextMessage", "content": QUESTION},
        {
            "source": "guide",
            "type": "ToolCallRequestEvent",
            "content": [{"id": "c1", "name": "get_weather", "arguments": dump(ARGUMENTS)}],
        },
        {
            "source": "guide",
            "type": "ToolCallExecutionEvent",
            "content": [
                {"content": RESULT, "name": "get_weather", "call_id": "c1", "is_error": False}
            ],
        },
        {"source": "guide", "type": "TextMessage", "content": ANSWER},
    ]
    root = chain(
        "autogen_agentchat",
        "RoundRobinGroupChat.run_stream",
        input__value=dump({"task": QUESTION}),
        output__value=dump({"messages": messages, "stop_reason": None}),
    )

    assert (trace_of(root).input, trace_of(root).output) == (QUESTION, ANSWER)


def test_a_described_tool_that_ran_was_on_offer() -> None:
    tool = Made(
        id=1,
        name="guide.get_weather",
        scope=SCOPE + "autogen_agentchat",
        attributes={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.description": "Looks up the weather.",
            "tool.parameters": dump(ARGUMENTS),
            "input.value": dump(ARGUMENTS),
        },
    )
    (offered,) = trace_of(tool).tools_offered

    assert (offered.name, offered.parameters) == ("get_weather", None)


def test_a_pydantic_ai_span_with_openinference_notes_is_read_as_its_own() -> None:
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "Hello"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]},
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]},
    ]
    root = Made(
        id=1,
        name="agent run",
        scope="pydantic-ai",
        attributes={
            "openinference.span.kind": "AGENT",
            "input.value": "Hello",
            "output.value": ANSWER,
            "agent_name": "guide",
            "final_result": ANSWER,
            "pydantic_ai.all_messages": dump(messages),
        },
    )
    tool = Made(
        id=2,
        parent=1,
        name="running tool",
        scope="pydantic-ai",
        attributes={
            "openinference.span.kind": "TOOL",
            "gen_ai.tool.name": "get_weather",
            "tool_arguments": dump(ARGUMENTS),
            "tool_response": RESULT,
        },
    )
    trace = trace_of(root, tool)

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "guide")
    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]
