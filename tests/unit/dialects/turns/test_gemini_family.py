"""Where the records and spans of Gemini CLI and Qwen Code belong."""

from typing import Any

import pytest

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span


def placed(name: str, *, trace: str = "", scope: str = "", **attributes: Any) -> Any:
    scope = scope or ("qwen-code" if "qwen" in name or "session." in name else "gemini-cli")
    event = AgentEvent(
        name=name,
        time_unix_nano=1,
        scope=scope,
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
        trace_id=trace,
    )
    return place_record(event)


def span_placed(name: str, scope: str, **attributes: Any) -> Place | None:
    agent = agent_of_span(scope)
    assert agent is not None
    event = AgentEvent(
        name=name, time_unix_nano=1, scope=scope, attributes=attributes, is_span=True
    )
    return place_span(event, agent)


@pytest.mark.parametrize(
    "name", ["gemini_cli.config", "gen_ai.client.inference.operation.details", "gemini_cli.startup"]
)
def test_what_gemini_says_of_itself_or_twice_is_dropped(name: str) -> None:
    dropped: Dropped = placed(name, session__id="s")

    assert dropped == "diagnostics"


def test_a_gemini_prompt_owns_a_trace_only_in_a_terminal() -> None:
    assert placed("gemini_cli.user_prompt", session__id="s", trace="ab" * 16).owns_trace
    assert not placed("gemini_cli.user_prompt", session__id="s").owns_trace


def test_no_id_of_geminis_names_a_turn() -> None:
    """Without a terminal the id of every prompt is that of the session."""
    prompt = placed("gemini_cli.user_prompt", session__id="s", prompt_id="s")

    assert (prompt.turn, prompt.is_prompt) == ("", True)


def test_qwens_numbered_prompts_name_turns_and_those_of_helpers_do_not() -> None:
    own = placed("qwen-code.api_request", session__id="s", prompt_id="s########3")
    helper = placed("qwen-code.api_request", session__id="s", prompt_id="s#general-purpose-c1#0")

    assert (own.turn, helper.turn) == ("s########3", "")


def test_the_span_around_a_qwen_turn_stands_for_a_prompt_that_came_as_a_stream() -> None:
    attributes = {"session.id": "s", "qwen-code.prompt_id": "s########1"}

    around = span_placed("qwen-code.interaction", "qwen-code", **attributes)
    within = span_placed("qwen-code.llm_request", "qwen-code", **attributes)

    assert around == Place(session="s", turn="s########1", is_prompt=True)
    assert within == Place(session="s", turn="s########1")


def test_the_end_of_qwens_session_ends_its_turn() -> None:
    assert placed("session.end", session__id="s").is_end
