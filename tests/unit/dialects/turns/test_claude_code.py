"""Where Claude Code's records and spans belong."""

from typing import Any

import pytest

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span

SCOPE = "com.anthropic.claude_code.events"
SPANS = "com.anthropic.claude_code.tracing"


def placed(name: str, **attributes: Any) -> Place | Dropped | None:
    given = {"session.id": "s", "prompt.id": "p", **attributes}
    return place_record(AgentEvent(name=name, time_unix_nano=1, scope=SCOPE, attributes=given))


def place(name: str, **attributes: Any) -> Place:
    found = placed(name, **attributes)
    assert isinstance(found, Place)
    return found


def test_every_record_of_a_prompt_names_its_turn() -> None:
    prompt, result = place("user_prompt", prompt="Hello"), place("tool_result")

    assert (prompt.session, prompt.turn, prompt.is_prompt) == ("s", "p", True)
    assert (result.session, result.turn, result.is_prompt) == ("s", "p", False)
    assert prompt.owns_trace
    assert result.owns_trace


def test_the_prefix_of_an_event_does_not_matter() -> None:
    assert place("claude_code.user_prompt", prompt="Hello").is_prompt


def test_what_a_helper_reports_is_no_turn() -> None:
    report = place("user_prompt", prompt="<task-notification>\n<task-id>a1")

    assert (report.is_prompt, report.is_helper, report.turn) == (False, True, "p")


@pytest.mark.parametrize("name", ["plugin_loaded", "managed_settings_resolved", "retention_sweep"])
def test_what_is_about_the_program_itself_is_dropped(name: str) -> None:
    assert placed(name) == "diagnostics"


def test_a_command_that_the_program_answers_itself_is_dropped_and_one_for_the_model_is_not() -> (
    None
):
    builtin = {"command_source": "builtin", "prompt": "/exit"}

    assert placed("user_prompt", command_name="exit", **builtin) == "diagnostics"
    assert placed("user_prompt", command_name="context", **builtin) == "diagnostics"
    assert place("user_prompt", command_name="init", **builtin).is_prompt
    assert place("user_prompt", command_name="exit", command_source="custom").is_prompt


def test_a_record_without_a_session_is_dropped() -> None:
    assert placed("user_prompt", **{"session.id": ""}) == "diagnostics"


def test_a_span_is_of_its_session_and_which_turn_others_tell() -> None:
    agent = agent_of_span(SPANS)
    assert agent is not None
    event = AgentEvent(
        name="claude_code.tool", time_unix_nano=1, scope=SPANS, attributes={"session.id": "s"}
    )

    assert place_span(event, agent) == Place(session="s")
