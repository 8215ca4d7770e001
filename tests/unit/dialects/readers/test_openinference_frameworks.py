"""Frameworks under OpenInference that export their own shapes."""

from dataclasses import replace
from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openinference import SCOPE, asked, calls, chain, flat, llm
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, dump


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
    def call(number: int, end: int, counts: tuple[int, int], said: dict[str, Any]) -> SpanSpec:
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

    around = chain("haystack", "Agent.run", output__value=dump({"messages": TRANSCRIPT}))
    spans = [call(1, 3, (5, 1), asked("Paris")), call(2, 5, (6, 2), SAID)]
    own = SpanSpec(
        id=9, parent=1, attributes={"haystack.agent.max_steps": 5}, end=99, scope="haystack"
    )

    for trace in (
        trace_of(around, *spans),
        trace_of(around, own, *(replace(s, parent=9) for s in spans)),
    ):
        assert_haystack(trace)
        assert len(trace.model_calls) == 2


def crew(**more: Any) -> SpanSpec:
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
    tool = SpanSpec(
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
    sent = dspy_fields(
        question=QUESTION,
        trajectory="",
        thought_0="Look.",
        tool_name_0="get_weather",
        tool_args_0=dump(ARGUMENTS),
        observation_0="Failed to execute: no such city",
    )
    sent += "\n\nRespond with the corresponding output fields, starting with `[[ ## next_thought ## ]]`."
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
            flat("input", prompt, {"role": "user", "content": sent}),
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


def test_the_repr_of_a_stream_is_no_answer_so_the_history_tells_its_calls() -> None:
    said = {"output.value": "<groq.Stream object at 0x7f6d55fc3750>"}
    sent = {"role": "tool", "tool_call_id": "c1", "content": RESULT}
    trace = trace_of(
        {},
        llm(1, "groq", flat("input", USER), said),
        llm(2, "groq", flat("input", USER, asked("Paris", ids=("c1",)), sent), said),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]
    assert trace.output is None


def test_an_answer_that_is_only_the_reprs_of_its_tool_calls() -> None:
    function = "Function(arguments='{\"city\": \"Paris\"}', name='get_weather')"
    call = f"ToolCall(id='c1', function={function}, type='function')"
    tool = SpanSpec(
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
    named = SpanSpec(
        id=2,
        parent=1,
        name="OpenAI._prepare_chat_with_tools",
        scope=prepared.scope,
        attributes=prepared.attributes,
    )

    assert len(trace_of(chain("llama_index"), named, real).model_calls) == 1


def test_smolagents_names_its_tools_on_the_agents_span() -> None:
    agent = SpanSpec(
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
    def tool(number: int, parent: int, name: str, **attributes: Any) -> SpanSpec:
        kind = {
            "openinference.span.kind": "TOOL",
            "input.value": dump({"input": ARGUMENTS, "options": None}),
        }
        return SpanSpec(
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
    tool = SpanSpec(
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
