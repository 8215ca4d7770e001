"""Where the records and spans of agents and SDKs belong."""

from dataclasses import dataclass, field
from typing import Any

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span
from tests.support.dialect_spans import dotted
from tests.support.table import for_each

# --- Claude Code -----------------------------------------------------------------------------------------------------


CLAUDE_SPANS = "com.anthropic.claude_code.tracing"
OF_CLAUDE = Place(session="s", turn="p", owns_trace=True)
CLAUDE_PROMPT = Place(session="s", turn="p", owns_trace=True, is_prompt=True)
REPORT = Place(session="s", turn="p", owns_trace=True, is_helper=True)
BUILTIN = {"command_source": "builtin", "prompt": "/exit"}


@dataclass(frozen=True)
class Record:
    why: str
    name: str
    place: Place | Dropped
    more: dict[str, Any] = field(default_factory=dict[str, Any])


@for_each(
    "record",
    [
        Record("a prompt begins a turn", "user_prompt", CLAUDE_PROMPT, {"prompt": "Hello"}),
        Record("the prefix does not matter", "claude_code.user_prompt", CLAUDE_PROMPT),
        Record("a result names the turn", "tool_result", OF_CLAUDE),
        Record("a report is no turn", "user_prompt", REPORT, {"prompt": "<task-notification>\n<"}),
        Record("about the program", "plugin_loaded", "diagnostics"),
        Record("about the program", "managed_settings_resolved", "diagnostics"),
        Record("about the program", "retention_sweep", "diagnostics"),
        *(
            Record("answered here", "user_prompt", "diagnostics", {"command_name": name, **BUILTIN})
            for name in ("exit", "context")
        ),
        Record("for the model", "user_prompt", CLAUDE_PROMPT, {"command_name": "init", **BUILTIN}),
        Record(
            "a person's own command",
            "user_prompt",
            CLAUDE_PROMPT,
            {"command_name": "exit", "command_source": "custom"},
        ),
        Record("without a session", "user_prompt", "diagnostics", {"session.id": ""}),
    ],
)
def test_where_a_record_belongs(record: Record) -> None:
    event = AgentEvent(
        name=record.name,
        time_unix_nano=1,
        scope="com.anthropic.claude_code.events",
        attributes={"session.id": "s", "prompt.id": "p", **record.more},
    )

    assert place_record(event) == record.place, record.why


def test_a_span_is_of_its_session_and_which_turn_others_tell() -> None:
    agent = agent_of_span(CLAUDE_SPANS)
    assert agent is not None
    event = AgentEvent(
        name="claude_code.tool",
        time_unix_nano=1,
        scope=CLAUDE_SPANS,
        attributes={"session.id": "s"},
    )

    assert place_span(event, agent) == Place(session="s")


# --- Codex -----------------------------------------------------------------------------------------------------------


LOGS, TALK, SDK = (
    f"codex_otel{scope}" for scope in (".log_only", ".agent_communication", "::metrics::client")
)
OF_CODEX = Place(session="c", owner="machine vm")
CODEX_PROMPT = Place(session="c", owner="machine vm", is_prompt=True)
NOT_TYPED = Place(session="c", owner="machine vm", turn="c", is_helper=True)
COMPLETED = {"event.kind": "response.completed"}
SPAWN = {"kind": "spawn", "sender_thread_id": "c", "receiver_thread_id": "h"}
PLACES: list[tuple[str, dict[str, Any], Place | Dropped]] = [
    ("user_prompt", {"prompt": "Hello"}, CODEX_PROMPT),
    ("user_prompt", {"prompt": "Generate a concise, single-line task title: x"}, NOT_TYPED),
    (
        "user_prompt",
        {"prompt": "Write a brief catch-up for a user returning to this"},
        CODEX_PROMPT,
    ),
    (
        "user_prompt",
        {"prompt": "Write a brief catch-up for a user returning to this Codex task."},
        NOT_TYPED,
    ),
    (
        "user_prompt",
        {"prompt": "The following is the Codex agent history whose request you are assessing."},
        NOT_TYPED,
    ),
    ("tool_result", {}, OF_CODEX),
    (
        "agent_response",
        {"agent.type": "main"},
        Place(session="c", owner="machine vm", is_end=True),
    ),
    ("agent_response", {"agent.type": "subagent"}, OF_CODEX),
    ("sse_event", {"event.kind": "response.created"}, "streamed_token"),
    ("sse_event", {"event.kind": "response.output_text.delta"}, "streamed_token"),
    ("sse_event", {**COMPLETED, "duration_ms": "0"}, "streamed_token"),
    ("sse_event", {**COMPLETED, "input_token_count": "7"}, OF_CODEX),
    ("sse_event", {"event.kind": "response.failed", "error.message": "overloaded"}, OF_CODEX),
    ("websocket_request", {"success": "true"}, OF_CODEX),
    ("websocket_connect", {"success": "false"}, OF_CODEX),
    ("websocket_connect", {"success": "true"}, "diagnostics"),
    ("startup_phase", {}, "diagnostics"),
    ("turn_ttft", {}, "diagnostics"),
    ("conversation_starts", {}, "diagnostics"),
    ("anything", {"scope": SDK}, "diagnostics"),
    (
        "agent_communication",
        {"scope": TALK, **SPAWN},
        Place(session="c", owner="machine vm", helper_session="h"),
    ),
    ("agent_communication", {"scope": TALK, "state": "receive"}, "diagnostics"),
]


@for_each(("name", "given", "place"), PLACES)
def test_where_a_record_of_codex_belongs(
    name: str, given: dict[str, Any], place: Place | Dropped
) -> None:
    event = AgentEvent(
        name=f"codex.{name}",
        time_unix_nano=1,
        scope=given.get("scope", LOGS),
        attributes={"conversation.id": "c", **given},
        resource={"host.name": "vm"},
    )

    assert place_record(event) == place


# --- Gemini CLI and Qwen Code ----------------------------------------------------------------------------------------


GEMINI_DETAILS = "gen_ai.client.inference.operation.details"


def event(name: str, scope: str, *, trace: str = "", **attributes: Any) -> AgentEvent:
    given = {"session.id": "s", **dotted(**attributes)}
    return AgentEvent(name=name, time_unix_nano=1, scope=scope, attributes=given, trace_id=trace)


def gemini(name: str, **more: Any) -> Any:
    return place_record(event(name, "gemini-cli", **more))


def qwen(name: str, **more: Any) -> Any:
    return place_record(event(name, "qwen-code", **more))


@for_each("name", ["gemini_cli.config", GEMINI_DETAILS, "gemini_cli.startup"])
def test_what_gemini_says_of_itself_or_twice_is_dropped(name: str) -> None:
    assert gemini(name) == "diagnostics"


@for_each("trace,owns", [("ab" * 16, True), ("", False)])
def test_a_gemini_prompt_owns_a_trace_only_in_a_terminal(trace: str, owns: bool) -> None:
    assert gemini("gemini_cli.user_prompt", trace=trace).owns_trace is owns


def test_no_id_of_geminis_names_a_turn() -> None:
    """Without a terminal the id of every prompt is that of the session."""
    prompt = gemini("gemini_cli.user_prompt", prompt_id="s")

    assert (prompt.turn, prompt.is_prompt) == ("", True)


@for_each("prompt,turn", [("s########3", "s########3"), ("s#general-purpose-c1#0", "")])
def test_qwens_numbered_prompts_name_turns_and_those_of_helpers_do_not(
    prompt: str, turn: str
) -> None:
    assert qwen("qwen-code.api_request", prompt_id=prompt).turn == turn


@for_each("name,is_prompt", [("interaction", True), ("llm_request", False)])
def test_the_span_around_a_qwen_turn_stands_for_a_prompt_that_came_as_a_stream(
    name: str, is_prompt: bool
) -> None:
    agent = agent_of_span("qwen-code")
    assert agent is not None
    given = {"qwen-code.prompt_id": "s########1"}
    span = event(f"qwen-code.{name}", "qwen-code", **given)

    assert place_span(span, agent) == Place(session="s", turn="s########1", is_prompt=is_prompt)


def test_the_end_of_qwens_session_ends_its_turn() -> None:
    assert qwen("session.end").is_end


# --- SDKs - to the span whose id they carry, else to turns made of their histories -----------------------------------


DETAILS = "gen_ai.client.inference.operation.details"
OF_SDK = "opentelemetry.instrumentation.genai.openai"
ASK = {"role": "user", "parts": [{"type": "text", "content": "Is it raining?"}]}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "id": "c1"}]}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "yes"}]}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}


def placed(*messages: Any, span: str = "cd" * 8, **more: Any) -> Place | Dropped | None:
    """Of a record with these messages, of a span unless that is empty."""
    fields: dict[str, Any] = {"name": DETAILS, "scope": OF_SDK, "time_unix_nano": 1, **more}
    event = AgentEvent(
        attributes={"gen_ai.input.messages": [*messages]} if messages else {},
        resource={"service.name": "shop"},
        trace_id="ab" * 16 if span else "",
        span_id=span,
        **fields,
    )
    return place_record(event)


def place(*messages: Any, at: int = 1) -> Place:
    found = placed(*messages, span="", time_unix_nano=at)
    assert isinstance(found, Place)
    return found


BODY: Any = {"input": {"messages": []}}
ROLES = ("system", "user", "assistant", "tool", "developer")


@for_each(
    "more",
    [
        {},
        {"name": "gen_ai.choice"},
        *({"name": f"gen_ai.{role}.message"} for role in ROLES),
        {"name": "strands.telemetry.tracer", "body": BODY},
    ],
)
def test_words_with_a_span_stay_in_its_trace(more: dict[str, Any]) -> None:
    assert placed(*([] if more else [ASK]), **more) is None


@for_each("span", ["cd" * 8, ""])
@for_each("scope", ["ragas", OF_SDK, "com.anthropic.claude_code.events", ""])
def test_a_score_that_somebody_gave_is_no_word_of_its_trace(scope: str, span: str) -> None:
    assert placed(name="gen_ai.evaluation.result", span=span, scope=scope) == "evaluation"


@for_each("name", ["gen_ai.evaluation.result", "gen_ai.choice", "renamed", ""])
def test_own_signals_that_come_back_are_dropped_as_such(name: str) -> None:
    assert placed(ASK, name=name, scope="spanwise") == "own"


@for_each(
    "more",
    [
        {"name": "gen_ai.client.operation.exception"},
        {"name": "", "body": "HTTP Request: POST /v1/chat"},
        {"name": "gen_ai.choice", "span": ""},
    ],
)
def test_records_that_lend_no_words_are_dropped(more: dict[str, Any]) -> None:
    assert placed(**more) == "no_agent"


def test_the_calls_after_the_same_words_of_a_person_are_one_turn_which_the_first_begins() -> None:
    first, second = place(ASK), place(ASK, CALL, RESULT)

    assert (first.session, first.is_prompt) == (second.session, True)
    assert not second.is_prompt


def test_results_in_the_users_name_are_not_a_persons_words() -> None:
    answered = place(ASK, CALL, {**RESULT, "role": "user"})

    assert (answered.session, answered.is_prompt) == (place(ASK).session, False)


def test_what_a_person_says_next_is_another_turn() -> None:
    assert place(ASK, SAID, ASK).session != place(ASK).session
    assert place(ASK, SAID, ASK).is_prompt


def test_the_order_of_keys_in_a_message_changes_nothing() -> None:
    assert place(dict(reversed(ASK.items()))).session == place(ASK).session


def test_records_without_words_are_each_by_itself() -> None:
    assert place(at=1).session != place(at=2).session
