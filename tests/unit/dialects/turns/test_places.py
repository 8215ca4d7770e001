"""Where the records and spans of agents and SDKs belong."""

from functools import partial
from typing import Any

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span
from tests.support.table import for_each

CLAUDE, CLAUDE_SPANS = (f"com.anthropic.claude_code.{kind}" for kind in ("events", "tracing"))
CODEX, TALK, METRICS = (
    f"codex_otel{scope}" for scope in (".log_only", ".agent_communication", "::metrics::client")
)
GEMINI, QWEN = "gemini-cli", "qwen-code"
DETAILS = "gen_ai.client.inference.operation.details"
IDS = {"session.id": "s", "prompt.id": "p", "conversation.id": "c"}
"""Each agent has some of them."""


def event(scope: str, name: str, given: dict[str, Any]) -> AgentEvent:
    return AgentEvent(
        name=name,
        time_unix_nano=1,
        scope=scope,
        attributes={**IDS, **given},
        resource={"host.name": "vm"},
        trace_id=given.get("trace", ""),
    )


of_claude = partial(Place, session="s", turn="p", owns_trace=True)
of_codex = partial(Place, session="c", owner="machine vm")
of_session = partial(Place, session="s")
BUILTIN = {"command_source": "builtin", "prompt": "/exit"}
COMPLETED = {"event.kind": "response.completed"}
SPAWN = {"kind": "spawn", "sender_thread_id": "c", "receiver_thread_id": "h"}
TITLE = "Generate a concise, single-line task title: x"
CATCH_UP = "Write a brief catch-up for a user returning to this"
ASSESSED = "The following is the Codex agent history whose request you are assessing."
DROPPED: list[tuple[str, str, dict[str, Any]]] = [
    # about the program
    *((CLAUDE, n, {}) for n in ("plugin_loaded", "managed_settings_resolved", "retention_sweep")),
    *((CODEX, f"codex.{n}", {}) for n in ("startup_phase", "turn_ttft", "conversation_starts")),
    *((GEMINI, name, {}) for name in ("gemini_cli.config", "gemini_cli.startup")),
    (METRICS, "codex.anything", {}),
    (CODEX, "codex.websocket_connect", {"success": "true"}),
    (TALK, "codex.agent_communication", {"state": "receive"}),
    # the program answers these commands itself
    *((CLAUDE, "user_prompt", {"command_name": n, **BUILTIN}) for n in ("exit", "context")),
    (CLAUDE, "user_prompt", {"session.id": ""}),
    (GEMINI, DETAILS, {}),  # says again what other records say
]
PLACES: list[tuple[str, str, dict[str, Any], Place]] = [
    (CLAUDE, "user_prompt", {"prompt": "Hello"}, of_claude(is_prompt=True)),
    (CLAUDE, "claude_code.user_prompt", {}, of_claude(is_prompt=True)),
    (CLAUDE, "tool_result", {}, of_claude()),
    (CLAUDE, "user_prompt", {"prompt": "<task-notification>\n<"}, of_claude(is_helper=True)),
    # commands for the model, and a person's own
    (CLAUDE, "user_prompt", {"command_name": "init", **BUILTIN}, of_claude(is_prompt=True)),
    (
        CLAUDE,
        "user_prompt",
        {"command_name": "exit", "command_source": "custom"},
        of_claude(is_prompt=True),
    ),
    (CODEX, "codex.user_prompt", {"prompt": "Hello"}, of_codex(is_prompt=True)),
    (CODEX, "codex.user_prompt", {"prompt": CATCH_UP}, of_codex(is_prompt=True)),
    # the program asks these itself
    *(
        (CODEX, "codex.user_prompt", {"prompt": text}, of_codex(turn="c", is_helper=True))
        for text in (TITLE, f"{CATCH_UP} Codex task.", ASSESSED)
    ),
    (CODEX, "codex.tool_result", {}, of_codex()),
    (CODEX, "codex.agent_response", {"agent.type": "main"}, of_codex(is_end=True)),
    (CODEX, "codex.agent_response", {"agent.type": "subagent"}, of_codex()),
    (CODEX, "codex.sse_event", {**COMPLETED, "input_token_count": "7"}, of_codex()),
    (CODEX, "codex.sse_event", {"event.kind": "response.failed", "error.message": "x"}, of_codex()),
    (CODEX, "codex.websocket_request", {"success": "true"}, of_codex()),
    (CODEX, "codex.websocket_connect", {"success": "false"}, of_codex()),
    (TALK, "codex.agent_communication", SPAWN, of_codex(helper_session="h")),
    # a prompt owns a trace in a terminal; without one its id is that of the session
    (
        GEMINI,
        "gemini_cli.user_prompt",
        {"trace": "ab" * 16},
        of_session(is_prompt=True, owns_trace=True),
    ),
    (GEMINI, "gemini_cli.user_prompt", {"prompt_id": "s"}, of_session(is_prompt=True)),
    # numbered prompts name turns, and those of helpers do not
    (QWEN, "qwen-code.api_request", {"prompt_id": "s########3"}, of_session(turn="s########3")),
    (QWEN, "qwen-code.api_request", {"prompt_id": "s#general-purpose-c1#0"}, of_session()),
    (QWEN, "session.end", {}, of_session(is_end=True)),
]


@for_each("scope,name,given,place", PLACES)
def test_where_a_record_belongs(scope: str, name: str, given: dict[str, Any], place: Place) -> None:
    assert place_record(event(scope, name, given)) == place


@for_each("scope,name,given", DROPPED)
def test_a_record_that_is_of_no_turn_is_dropped(
    scope: str, name: str, given: dict[str, Any]
) -> None:
    assert place_record(event(scope, name, given)) == "diagnostics"


@for_each("kind", ["created", "output_text.delta", "completed"])
def test_a_streamed_token_of_codex_is_dropped_as_such(kind: str) -> None:
    given = {"event.kind": f"response.{kind}", "duration_ms": "0"}

    assert place_record(event(CODEX, "codex.sse_event", given)) == "streamed_token"


@for_each(
    "scope,name,place",
    [
        (CLAUDE_SPANS, "claude_code.tool", of_session()),
        # the span around a turn stands for a prompt that came as a stream
        (QWEN, "qwen-code.interaction", of_session(turn="s########1", is_prompt=True)),
        (QWEN, "qwen-code.llm_request", of_session(turn="s########1")),
    ],
)
def test_where_a_span_belongs(scope: str, name: str, place: Place) -> None:
    agent = agent_of_span(scope)
    assert agent is not None

    assert place_span(event(scope, name, {"qwen-code.prompt_id": "s########1"}), agent) == place


# --- SDKs - to the span whose id they carry, else to turns made of their histories -----------------------------------


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
