"""Where Codex's records belong."""

from typing import Any

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import place_record
from tests.support.table import for_each

LOGS, TALK, SDK = (
    f"codex_otel{scope}" for scope in (".log_only", ".agent_communication", "::metrics::client")
)
OWN = Place(session="c", owner="machine vm")
PROMPT = Place(session="c", owner="machine vm", is_prompt=True)
NOT_TYPED = Place(session="c", owner="machine vm", turn="c", is_helper=True)
COMPLETED = {"event.kind": "response.completed"}
SPAWN = {"kind": "spawn", "sender_thread_id": "c", "receiver_thread_id": "h"}
PLACES: list[tuple[str, dict[str, Any], Place | Dropped]] = [
    ("user_prompt", {"prompt": "Hello"}, PROMPT),
    ("user_prompt", {"prompt": "Generate a concise, single-line task title: x"}, NOT_TYPED),
    ("user_prompt", {"prompt": "Write a brief catch-up for a user returning to this"}, PROMPT),
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
    ("tool_result", {}, OWN),
    (
        "agent_response",
        {"agent.type": "main"},
        Place(session="c", owner="machine vm", is_end=True),
    ),
    ("agent_response", {"agent.type": "subagent"}, OWN),
    ("sse_event", {"event.kind": "response.created"}, "streamed_token"),
    ("sse_event", {"event.kind": "response.output_text.delta"}, "streamed_token"),
    ("sse_event", {**COMPLETED, "duration_ms": "0"}, "streamed_token"),
    ("sse_event", {**COMPLETED, "input_token_count": "7"}, OWN),
    ("sse_event", {"event.kind": "response.failed", "error.message": "overloaded"}, OWN),
    ("websocket_request", {"success": "true"}, OWN),
    ("websocket_connect", {"success": "false"}, OWN),
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
def test_where_a_record_belongs(name: str, given: dict[str, Any], place: Place | Dropped) -> None:
    event = AgentEvent(
        name=f"codex.{name}",
        time_unix_nano=1,
        scope=given.get("scope", LOGS),
        attributes={"conversation.id": "c", **given},
        resource={"host.name": "vm"},
    )

    assert place_record(event) == place
