"""Frameworks that export spans of their own."""

from typing import Any

from evaluators.model import Trace
from tests.support.conventions import AGENT, CHAT, ROOT, asks, says, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.openai_messages import ASKED, assert_whole
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, compact, dump, one_call

# --- Haystack --------------------------------------------------------------------------------------------------------


def message(role: str, **content: Any) -> dict[str, Any]:
    return {"role": role, "meta": {}, "name": None, "content": [content]}


CALLED = {"tool_name": "get_weather", "arguments": ARGUMENTS, "id": "c1"}
GENERATOR = "OpenAIChatGenerator"


def component(kind: str, given: Any, came: Any) -> dict[str, Any]:
    sides = {"input": compact(given), "output": compact(came)}
    return under("haystack.component.", type=kind, **sides)


def haystack(*, failed: bool = False, underscore: bool = False) -> Trace:
    returned = message(
        "tool", tool_call_result={"result": RESULT, "origin": CALLED, "error": failed}
    )
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    answer = message("assistant", text=ANSWER) | {"meta": {"model": "gpt-4o", "usage": usage}}
    asked = message("user", text=QUESTION)
    if underscore:
        answer, asked = ({f"_{k}": v for k, v in m.items()} for m in (answer, asked))
    called = message("assistant", tool_call=CALLED)
    sent = {"messages": [asked]}
    data = {"haystack.pipeline.input_data": compact({"agent": sent})}
    return trace_of(
        {NAME: "haystack.pipeline.run", **data},
        component(GENERATOR, sent, {"replies": [called]}),
        component("ToolInvoker", {}, {"tool_messages": [returned]}),
        component(GENERATOR, sent, {"replies": [answer]}),
    )


@for_each("underscore", [False, True])  # before 2.13 fields were named so
def test_haystack_2_components(underscore: bool) -> None:
    trace = haystack(underscore=underscore)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert (trace.tokens.input, trace.tokens.output, trace.models) == (7, 2, ("gpt-4o",))


def test_a_tool_of_haystack_says_whether_it_failed() -> None:
    assert_whole(haystack())
    assert one_call(haystack(failed=True)).error == RESULT


# --- pydantic-ai before 0.1 ------------------------------------------------------------------------------------------


def test_a_retry_prompt_of_pydantic_ai_says_that_a_tool_failed() -> None:
    words = "timed out\n\nFix the errors and try again."
    told = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": words}
    answers = [{"event.name": "gen_ai.choice", "message": message} for message in (ASKED, SAID)]
    calls = ({**CHAT, "events": dump(each)} for each in ([answers[0]], [told, answers[1]]))

    assert one_call(trace_of({}, *calls, scope="pydantic-ai")).error == words


# --- opencode --------------------------------------------------------------------------------------------------------


IN_QUOTES = '"What is the release number?"'
RELEASE = "It is 4.7.11."


def opencode(id_: int, operation: str, **own: Any) -> SpanSpec:
    given = under("ai.", operationId=operation, telemetry__functionId="session.llm", **own)
    return SpanSpec(id=id_, parent=99, start=id_, end=id_ + 1, scope="opencode", attributes=given)


def called_model(id_: int, system: str, answer: str, tokens: int) -> SpanSpec:
    asked = {"role": "user", "content": [{"type": "text", "text": IN_QUOTES}]}
    messages = dump([{"role": "system", "content": system}, asked])
    usage = {"usage__inputTokens": tokens, "usage__outputTokens": 2}
    said = {"prompt__messages": messages, "response__text": answer}
    return opencode(id_, "ai.streamText.doStream", **said, **usage)


TITLE = called_model(
    1, "You are a title generator. You output ONLY a thread title.", "Releases", 10
)
WORK = called_model(2, "You are opencode.", RELEASE, 20)


def test_a_title_is_neither_question_nor_answer_but_costs_tokens() -> None:
    both, alone = trace_of(TITLE, WORK), trace_of(TITLE)

    assert (both.input, both.output) == (IN_QUOTES.strip('"'), RELEASE)
    assert (alone.output, alone.tokens.input, both.tokens.input) == (None, 10, 30)


@for_each("code,error", [(1, "no such file"), (0, None)])
def test_a_result_is_the_output_and_its_exit_code_tells_of_failure(
    code: int, error: str | None
) -> None:
    result = {"title": "cat", "metadata": {"exit": code}, "output": "no such file"}
    own = {"name": "bash", "id": "c1", "args": "{}", "result": dump(result)}
    ran = opencode(3, "ai.toolCall", **{f"toolCall__{key}": value for key, value in own.items()})

    found = one_call(trace_of(WORK, ran))

    assert (found.result, found.error) == ("no such file", error)


def test_the_agent_is_not_called_as_all_its_model_calls_are() -> None:
    assert trace_of(opencode(4, "ai.streamText"), TITLE).agent == "opencode"


# --- openlit ---------------------------------------------------------------------------------------------------------


TRACING = "openlit.otel.tracing"
PROMPT = f"system: Be brief.\nOr try.\nuser: {QUESTION}"


def function(name: str, attributes: dict[str, Any], **more: Any) -> SpanSpec:
    return SpanSpec(name=name, scope="openlit", attributes=attributes, **more)


def lines(prompt: str, said: str, **attributes: Any) -> SpanSpec:
    events = [
        ("gen_ai.content.prompt", {"gen_ai.prompt": prompt}),
        ("gen_ai.content.completion", {"gen_ai.completion": said}),
    ]
    return SpanSpec(name="chat", scope=TRACING, events=events, attributes=CHAT | attributes)


GIVEN = {"function.kwargs": str(ARGUMENTS), "gen_ai.completion": RESULT}
WEATHER = function("get_weather", GIVEN)


def test_openlit_wrote_messages_as_lines_and_the_calls_beside_them() -> None:
    calls = str([{"id": "c1", "function": {"name": "get_weather", "arguments": dump(ARGUMENTS)}}])
    trace = trace_of(
        ROOT,
        lines(PROMPT, "None", **{"gen_ai.response.tool_calls": calls}),
        WEATHER,
        lines(f"{PROMPT}\nassistant: None\ntool: {RESULT}", ANSWER),
    )

    assert (trace.input, trace.output, trace.system) == (QUESTION, ANSWER, "Be brief.\nOr try.")
    call = one_call(trace)
    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)
    assert call.span_id is not None


def test_several_calls_in_one_text() -> None:
    said = {
        "gen_ai.tool.name": "f, g",
        "gen_ai.tool.call.id": "c1, c2",
        "gen_ai.tool.args": '{"a": 1}, {"b": 2}',
    }
    trace = trace_of({**CHAT, **said}, scope=TRACING)

    found = [(call.id, call.name, call.arguments) for call in trace.tool_calls]
    assert found == [("c1", "f", {"a": 1}), ("c2", "g", {"b": 2})]


def test_a_traced_function_whose_result_was_sent_to_a_model_is_a_tool() -> None:
    trace = trace_of(
        function("answer", {"function.args": f"({QUESTION!r},)"}),
        lines(PROMPT, "Function called with tools"),
        WEATHER,
        function("log", {"gen_ai.completion": "logged"}),
        lines(f"{PROMPT}\ntool: {RESULT}", ANSWER),
    )

    call = one_call(trace)
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)
    assert trace.input == QUESTION


def test_a_traced_function_inside_a_tools_span_is_that_call() -> None:
    asked = {**CHAT, "gen_ai.output.messages": asks("c1")}
    inner = function("get_weather", GIVEN, parent=3, start=3, end=4)

    trace = trace_of(ROOT, asked, {NAME: "execute_tool get_weather", **tool()}, inner)

    assert one_call(trace).id == "c1"


@for_each(
    "text,result,call_id,error",
    [
        (
            "content='status: unknown' name='get_weather' tool_call_id='c1'",
            "status: unknown",
            "c1",
            None,
        ),
        (
            "content='Error: timed out' name='f' tool_call_id='c1' status='error'",
            "Error: timed out",
            "c1",
            "Error: timed out",
        ),
        ("content='mine'", "content='mine'", None, None),  # a result that only looks so
    ],
)
def test_a_tool_message_shown_as_text_is_its_content_and_its_status(
    text: str, result: str, call_id: str | None, error: str | None
) -> None:
    shown = {NAME: "execute_tool", **tool(result=text)}

    call = one_call(trace_of(shown, scope="openlit.otel.langchain"))

    assert (call.result, call.id, call.error) == (result, call_id, error)


# --- Spring AI -------------------------------------------------------------------------------------------------------


def spring_model(given: int, came: int) -> dict[str, Any]:
    usage = {"gen_ai.usage.input_tokens": str(given), "gen_ai.usage.output_tokens": str(came)}
    return {NAME: "chat", **CHAT, **usage}


def spring_tool(name: str = "tool_call get_weather", result: str = '"rain"') -> dict[str, Any]:
    own = under("spring.ai.", kind="tool_call", tool__definition__name="get_weather")
    return {NAME: name, **own, "spring.ai.tool.call.result": result}


def in_loop(*steps: dict[str, Any]) -> Trace:
    return trace_of({NAME: "call"}, *steps)


SECOND = spring_tool("execute_tool get_weather")


@for_each(
    "steps,counts",
    [
        # in the first version the calls of one loop count on
        (
            [
                spring_model(148, 13),
                spring_tool(),
                spring_model(372, 26),
                spring_tool(),
                spring_model(667, 43),
            ],
            [(148, 13), (224, 13), (295, 17)],
        ),
        # in the second they do not
        ([spring_model(148, 13), SECOND, spring_model(372, 26)], [(148, 13), (372, 26)]),
        # a call that no tool came before begins again
        (
            [spring_model(100, 5), spring_tool(), spring_model(300, 9), spring_model(400, 20)],
            [(100, 5), (200, 4), (400, 20)],
        ),
    ],
)
def test_model_calls_of_one_loop_count_on_in_the_first_version(
    steps: list[dict[str, Any]], counts: list[tuple[int, int]]
) -> None:
    trace = in_loop(*steps)

    found = [(call.tokens.input, call.tokens.output) for call in trace.model_calls]
    assert found == counts
    sums = [sum(each) for each in zip(*counts, strict=True)]
    assert [trace.tokens.input, trace.tokens.output] == sums


@for_each(
    "result,failed",
    [('"rain"', False), ('{"a": 1}', False), ("12", False), ("backend timed out", True)],
)
def test_a_result_that_is_no_json_is_the_message_of_what_was_raised(
    result: str, failed: bool
) -> None:
    assert (one_call(in_loop(spring_tool(result=result))).error is not None) is failed


# --- voice - Pipecat and LiveKit Agents ------------------------------------------------------------------------------


TOOLS = dump([{"type": "function", "function": {"name": "get_weather", "parameters": {}}}])


def llm(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {NAME: "llm", **CHAT, "input": dump(messages), "tools": TOOLS, **more}


def test_pipecat_has_spans_for_the_tools_of_a_model_that_speaks() -> None:
    own = {"arguments": dump(ARGUMENTS), "result": RESULT, "result_status": "error"}
    tool = under("tool.", function_name="get_weather", call_id="c1", **own)
    operation = {NAME: "llm_tool_call", "gen_ai.operation.name": "llm_tool_call"}

    call = one_call(trace_of({**operation, **tool}, scope="pipecat"))

    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert call.error == RESULT


def within(number: int, parent: int, given: dict[str, Any], end: int = 0) -> SpanSpec:
    own = {key: value for key, value in given.items() if key != NAME}
    start = number * 10
    end = end or start + 5
    place: dict[str, Any] = {"id": number, "parent": parent, "start": start, "end": end}
    return SpanSpec(name=given[NAME], attributes=own, scope="pipecat.turn", **place)


AROUND = SpanSpec(id=1, name="conversation", scope="pipecat.turn", end=9_999)


def conversation(*said: tuple[str, str]) -> list[SpanSpec]:
    """Of Pipecat, a turn for each question and answer."""
    spans: list[SpanSpec] = []
    asked: list[dict[str, Any]] = []
    for number, (question, answer) in enumerate(said, start=1):
        turn = {NAME: "turn", "turn.number": number}
        asked.append({"role": "user", "content": question})
        spans.append(within(number * 10, 1, turn, number * 100 + 90))
        spans.append(within(number * 10 + 1, number * 10, llm(asked, output=answer)))
        asked.append({"role": "assistant", "content": answer})
    return spans


SPOKEN = ((QUESTION, ANSWER), ("And in Rome?", "Rain."))


@for_each("around", [[AROUND], []])
def test_a_conversation_that_is_one_trace_has_its_turns_also_without_the_span_around_it(
    around: list[SpanSpec],
) -> None:
    trace = trace_of(*around, *conversation(*SPOKEN))

    assert [(turn.input, turn.output) for turn in trace.turns] == [*SPOKEN]
    assert (trace.input, trace.output) == (QUESTION, "Rain.")


def test_a_conversation_of_one_turn_is_not_told_by_turns() -> None:
    assert trace_of(AROUND, *conversation(SPOKEN[0])).turns == ()


def test_of_many_turns_the_newest_are_kept() -> None:
    trace = trace_of(AROUND, *conversation(*((f"question {n}", "x" * 9_000) for n in range(50))))

    assert [turn.input for turn in trace.turns] == [f"question {n}" for n in range(18, 50)]
    assert {len(turn.output or "") for turn in trace.turns} == {8192}


@for_each("pii", ["", "pii."])
def test_livekit_goes_on_in_a_turn_of_the_same_speech(pii: str) -> None:
    def turn(number: int, speech: str, answer: str) -> list[SpanSpec]:
        given = under("lk.", speech_id=speech, **{f"{pii}user_input": f"question {speech}"})
        call = {**CHAT, "gen_ai.output.messages": says(answer)}
        scope = "livekit-agents"
        return [
            SpanSpec(id=number, parent=1, name="agent_turn", attributes=given | AGENT, scope=scope),
            SpanSpec(id=number + 1, parent=number, attributes=call, start=number, scope=scope),
        ]

    session = SpanSpec(name="agent_session")
    spans = [*turn(10, "a", "Let me look."), *turn(20, "a", ANSWER), *turn(30, "b", "Bye.")]
    trace: Trace = trace_of(session, *spans, scope="livekit-agents")

    assert [turn.output for turn in trace.turns] == [ANSWER, "Bye."]
