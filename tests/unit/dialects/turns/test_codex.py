"""Where Codex's records belong."""

from typing import Any

import pytest

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import place_record


def placed(
    name: str, scope: str = "codex_otel.log_only", **attributes: Any
) -> Place | Dropped | None:
    given = {"conversation.id": "c", **attributes}
    event = AgentEvent(
        name=name,
        time_unix_nano=1,
        scope=scope,
        attributes=given,
        resource={"host.name": "vm"},
    )
    return place_record(event)


def place(name: str, **attributes: Any) -> Place:
    found = placed(name, **attributes)
    assert isinstance(found, Place)
    return found


def test_a_prompt_begins_a_turn_and_only_the_main_agents_answer_ends_it() -> None:
    assert place("codex.user_prompt", prompt="Hello").is_prompt
    assert place("codex.agent_response", **{"agent.type": "main"}).is_end
    assert not place("codex.agent_response", **{"agent.type": "subagent"}).is_end
    assert not place("codex.tool_result").is_prompt


def test_all_conversations_of_a_machine_have_one_owner() -> None:
    assert place("codex.tool_result").owner == place("codex.user_prompt", prompt="x").owner
    assert "vm" in place("codex.tool_result").owner


@pytest.mark.parametrize("kind", ["response.created", "response.output_text.delta"])
def test_streamed_events_are_dropped(kind: str) -> None:
    assert placed("codex.sse_event", **{"event.kind": kind}) == "streamed_token"


def test_the_end_of_an_answer_is_kept_once_with_its_counts() -> None:
    completed = {"event.kind": "response.completed"}

    assert placed("codex.sse_event", **completed, duration_ms="0") == "streamed_token"
    assert place("codex.sse_event", **completed, input_token_count="7").session == "c"


def test_an_answer_that_failed_is_kept() -> None:
    failed = {"event.kind": "response.failed", "error.message": "overloaded"}

    assert place("codex.sse_event", **failed).session == "c"


@pytest.mark.parametrize(
    "name", ["codex.startup_phase", "codex.turn_ttft", "codex.conversation_starts"]
)
def test_what_is_about_the_program_itself_is_dropped(name: str) -> None:
    assert placed(name) == "diagnostics"


def test_records_of_its_own_sdk_are_dropped() -> None:
    assert placed("event otel/src/metrics/client.rs:324", scope="codex_otel::metrics::client") == (
        "diagnostics"
    )


@pytest.mark.parametrize(
    "prompt",
    [
        "Generate a concise, single-line task title for: x",
        "Write a brief catch-up for a user returning to this Codex task.",
        "The following is the Codex agent history whose request action you are assessing.",
    ],
)
def test_a_prompt_that_was_not_typed_is_no_turn_of_a_person(prompt: str) -> None:
    title = place("codex.user_prompt", prompt=prompt)

    assert (title.is_prompt, title.is_helper) == (False, True)


def test_requests_over_a_connection_that_stays_are_of_the_conversation() -> None:
    assert place("codex.websocket_request", success="true").session == "c"
    assert place("codex.websocket_connect", success="false").session == "c"
    assert placed("codex.websocket_connect", success="true") == "diagnostics"


def test_a_spawn_says_whose_helper_a_conversation_is() -> None:
    spawn = {"kind": "spawn", "sender_thread_id": "c", "receiver_thread_id": "h"}

    place = placed("codex.agent_communication", scope="codex_otel.agent_communication", **spawn)

    assert isinstance(place, Place)
    assert (place.session, place.helper_session) == ("c", "h")


def test_other_communication_is_dropped() -> None:
    scope = "codex_otel.agent_communication"

    assert placed("codex.agent_communication", scope=scope, state="receive") == "diagnostics"
