"""Where the records and spans of Gemini CLI and Qwen Code belong."""

from typing import Any

from evaluators.dialects.turns.place import AgentEvent, Place
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span
from tests.support.dialect_spans import dotted
from tests.support.table import for_each

DETAILS = "gen_ai.client.inference.operation.details"


def event(name: str, scope: str, *, trace: str = "", **attributes: Any) -> AgentEvent:
    given = {"session.id": "s", **dotted(**attributes)}
    return AgentEvent(name=name, time_unix_nano=1, scope=scope, attributes=given, trace_id=trace)


def gemini(name: str, **more: Any) -> Any:
    return place_record(event(name, "gemini-cli", **more))


def qwen(name: str, **more: Any) -> Any:
    return place_record(event(name, "qwen-code", **more))


@for_each("name", ["gemini_cli.config", DETAILS, "gemini_cli.startup"])
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
