"""The GenAI conventions, in their versions and as vendors write them."""

from typing import Any

from evaluators.model import ToolCall
from tests.support.conventions import AGENT, CHAT, asked, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.openai_messages import CALL, assert_whole
from tests.support.openinference import SCOPE, of
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    compact,
    dump,
    one_call,
)


@for_each("mark", [{"tool.status": "error"}, {"error.type": "ExecutionError"}])
def test_tool_spans_that_state_an_error_without_a_status(mark: dict[str, str]) -> None:
    assert one_call(trace_of(tool(**mark))).error


def test_the_agent_of_a_step_is_the_one_it_names() -> None:
    step = {"gen_ai.operation.name": "agent_step", "gen_ai.agent.name": "clerk"}

    assert trace_of({NAME: "step 1", **step}).agent == "clerk"


@for_each(
    "scope,name,plain",
    [
        ("semantic_kernel.utils.telemetry", "WeatherPlugin-get_weather", "get_weather"),
        ("Microsoft.SemanticKernel", "WeatherPlugin_get_weather", "get_weather"),
        ("", "SearchPlugin-look-up", "SearchPlugin-look-up"),
    ],
)
def test_a_plugins_name_is_lost_in_semantic_kernel_but_not_in_another_framework(
    scope: str, name: str, plain: str
) -> None:
    assert one_call(trace_of({}, tool(name), scope=scope)).name == plain


# --- content in span events ------------------------------------------------------------------------------------------


Event = tuple[str, dict[str, Any]]


def azure(name: str, **content: Any) -> Event:
    return f"gen_ai.{name}", {"gen_ai.event.content": dump(content)}


def with_events(attributes: dict[str, Any], *events: Event) -> SpanSpec:
    return SpanSpec(attributes=attributes, events=events)


def test_an_azure_thread_run_is_read_from_its_events() -> None:
    run = {
        "gen_ai.system": "az.ai.agents",
        "gen_ai.operation.name": "process_thread_run",
        "gen_ai.thread.id": "thread_1",
        "gen_ai.agent.id": "asst_1",
        "gen_ai.response.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 6,
    }
    events = [
        azure("user.message", content=QUESTION, role="user"),
        azure("assistant.message", tool_calls=[CALL], role="assistant"),
        azure("tool.message", content=RESULT, id="c1"),
        azure("assistant.message", content={"text": {"value": ANSWER}}, role="assistant"),
    ]
    trace = trace_of({NAME: "my agent"}, with_events(run, *events), scope="azure.ai.agents")

    assert_whole(trace)
    assert (trace.session_id, trace.tokens.input) == ("thread_1", 12)


def test_the_result_of_a_tool_of_strands_is_the_text_of_its_blocks() -> None:
    given = ("gen_ai.tool.message", {"content": dump(ARGUMENTS), "id": "c1"})
    came = ("gen_ai.choice", {"message": dump([{"text": RESULT}]), "id": "c1"})

    call = one_call(trace_of(with_events(tool(), given, came), scope="strands.telemetry.tracer"))

    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)


def test_sentry_writes_an_answers_calls_beside_its_texts() -> None:
    said = {"gen_ai.response.text": '[""]', "gen_ai.response.tool_calls": dump([CALL])}

    assert one_call(trace_of({**CHAT, **said})).arguments == ARGUMENTS


def test_a_score_among_a_spans_events_is_no_message() -> None:
    score = ("gen_ai.evaluation.result", {"gen_ai.evaluation.explanation": "wrong city"})
    asked = ("gen_ai.user.message", {"content": QUESTION})

    assert trace_of(with_events(CHAT, score)).input is None
    assert trace_of(with_events(CHAT, asked, score)).input == QUESTION


# --- Genkit ----------------------------------------------------------------------------------------------------------


def action(subtype: str, name: str, **sides: Any) -> dict[str, Any]:
    own = {key: compact(value) for key, value in sides.items()}
    return under("genkit:", type="action", name=name, **{"metadata:subtype": subtype}, **own)


def test_the_input_of_the_outermost_flow_may_name_the_session_unless_an_attribute_does() -> None:
    given = {"question": QUESTION, "sessionId": "s-1"}
    flow = {**action("flow", "weather", input=given), "genkit:isRoot": True}
    trace = trace_of(flow)

    assert (trace.session_id, trace.session_source, trace.input) == ("s-1", "genkit", QUESTION)
    assert trace_of({**flow, "session.id": "s-2"}).session_id == "s-2"


# --- Google's ADK, also 1.x ------------------------------------------------------------------------------------------


ADK = "gcp.vertex.agent"


def adk(**own: Any) -> dict[str, Any]:
    """Attributes of ADK's own; what is no text as JSON."""
    texts = {key: value if isinstance(value, str) else dump(value) for key, value in own.items()}
    return under(f"{ADK}.", **texts)


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


def test_two_older_adk_calls_without_an_id_are_two_calls_and_emptied_ones_say_nothing() -> None:
    emptied = adk(tool_call_args="{}", tool_response="{}")
    used = {**tool("get_weather", "<not specified>"), **emptied}
    trace = trace_of({}, used, used, scope=ADK)

    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [(None, None, None)] * 2


@for_each(
    "name,agents,models,tools",
    [
        ("agent_run [helper]", ("helper",), 0, []),
        ("call_llm", (), 1, []),
        ("execute_tool get_weather", (), 0, ["get_weather"]),
    ],
)
def test_a_span_of_adk_1_is_known_by_its_name(
    name: str, agents: tuple[str, ...], models: int, tools: list[str]
) -> None:
    trace = trace_of({NAME: name, **adk(session_id="s-1")}, scope=ADK)

    assert (trace.agents, len(trace.model_calls)) == (agents, models)
    assert [call.name for call in trace.tool_calls] == tools


# --- Mastra ----------------------------------------------------------------------------------------------------------


def test_a_mastra_error_is_read_from_its_attribute_where_the_status_has_no_words() -> None:
    error = {"error.type": "TOOL_EXECUTION_FAILED", "error.message": "no such city"}
    failed = SpanSpec(status=2, attributes=tool(**error))

    assert one_call(trace_of({}, failed)).error == "no such city"


# --- Quarkus LangChain4j ---------------------------------------------------------------------------------------------


QUARKUS = "io.quarkus.opentelemetry"


@for_each(
    "prompt,question",
    [
        (QUESTION, QUESTION),
        (f"You are a clerk.\n{QUESTION}", QUESTION),
        (f"You are a clerk.\n{QUESTION}\nnull\nrain", None),
        (f"Be kind.\n{QUESTION}", None),
        (f"{QUESTION}\nnull\nrain", None),
    ],
)
def test_a_question_is_read_only_where_nothing_but_a_system_prompt_was_sent_too(
    prompt: str, question: str | None
) -> None:
    models = {"request__model": "gpt-4o-mini", "response__model": "gpt-4o-mini"}
    given = under("gen_ai.", prompt=prompt, completion=ANSWER, response__id="r", **models)
    trace = trace_of({NAME: "completion", **given}, scope=QUARKUS)

    assert (trace.input, trace.output, trace.dialects) == (question, ANSWER, ("quarkus",))
    assert len(trace.model_calls) == 1


@for_each("result,error", [(None, "timed out"), ("booked", None)])
def test_a_tool_that_raised_failed_unless_it_came_to_a_result(
    result: str | None, error: str | None
) -> None:
    raised = ("exception", {"exception.type": "E", "exception.message": "timed out"})
    own = tool("book", arguments=dump(ARGUMENTS), result=result)
    ran = SpanSpec(name="langchain4j.tools.book", attributes=own, events=[raised])

    assert one_call(trace_of(ran, scope=QUARKUS)).error == error


# --- rig -------------------------------------------------------------------------------------------------------------


COUNTS = {"gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "3"}


def rig(own: dict[str, Any], target: str = "rig::agent_chat") -> dict[str, Any]:
    return {NAME: "step", "target": target, "busy_ns": 1, "idle_ns": 1, **own}


@for_each(
    "spans,is_turn",
    [
        ([rig({**CHAT, **COUNTS})], False),  # a step alone
        ([rig(tool())], False),
        ([{NAME: "turn"}, rig({**CHAT, **COUNTS})], True),  # under a span of the application
        ([rig({**CHAT, **COUNTS}, "rig::completions")], True),  # a model without an agent
    ],
)
def test_steps_of_rig_are_a_turn_where_something_is_around_them(
    spans: list[dict[str, Any]], is_turn: bool
) -> None:
    trace = trace_of(*spans)

    assert trace.is_turn is is_turn
    assert trace.tokens.input == (5 if is_turn else None)
    assert len(trace.tool_calls) + len(trace.model_calls) == 1


# --- GitHub Copilot CLI ----------------------------------------------------------------------------------------------


COPILOT = "github.copilot"
AROUND = {NAME: "invoke_agent", **AGENT}


def ran_by_copilot(own: dict[str, Any], **more: Any) -> ToolCall:
    """A call of a command, in an agent."""
    return one_call(trace_of(AROUND, SpanSpec(attributes=own, **more), scope=COPILOT))


@for_each("code,error", [(1, "no such file"), (0, None)])
def test_an_exit_code_other_than_nought_is_a_failure_with_the_output_as_its_text(
    code: int, error: str | None
) -> None:
    own = tool("bash", result="no such file") | {"process.exit.code": code}

    assert ran_by_copilot(own).error == error


@for_each("kind,by", [("denied", "policy"), ("rejected", "user")])
def test_a_refusal_names_who_refused(kind: str, by: str) -> None:
    refused = tool("bash", **{"error.type": kind})

    call = ran_by_copilot(refused, status=2, message="Permission denied")

    assert (call.rejected, call.error) == (by, "Permission denied")


def test_the_time_before_a_persons_words_is_no_part_of_them() -> None:
    time = "<current_datetime>2026-11-22T07:54:00Z</current_datetime>"
    sent = {"gen_ai.input.messages": asked(f"{time}\n\nRemove the folder.")}

    trace = trace_of({**AROUND, **sent}, scope=COPILOT)

    assert (trace.input, trace.agent) == ("Remove the folder.", "copilot")


# --- Vercel AI SDK ----------------------------------------------------------------------------------------------------


@for_each("system", [{}, {"system": "Be brief."}])
def test_a_prompt_of_the_ai_sdk_is_a_text_with_or_without_a_system_prompt(
    system: dict[str, str],
) -> None:
    prompt = {"ai.prompt": dump({**system, "prompt": QUESTION})}

    trace = trace_of({"ai.operationId": "ai.generateText.doGenerate", **prompt})

    assert (trace.input, trace.system) == (QUESTION, system.get("system"))
