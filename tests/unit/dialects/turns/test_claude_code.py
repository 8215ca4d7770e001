"""Where Claude Code's records and spans belong."""

from dataclasses import dataclass, field
from typing import Any

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span
from tests.support.table import for_each

SPANS = "com.anthropic.claude_code.tracing"
OWN = Place(session="s", turn="p", owns_trace=True)
PROMPT = Place(session="s", turn="p", owns_trace=True, is_prompt=True)
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
        Record("a prompt begins a turn", "user_prompt", PROMPT, {"prompt": "Hello"}),
        Record("the prefix does not matter", "claude_code.user_prompt", PROMPT),
        Record("a result names the turn", "tool_result", OWN),
        Record("a report is no turn", "user_prompt", REPORT, {"prompt": "<task-notification>\n<"}),
        Record("about the program", "plugin_loaded", "diagnostics"),
        Record("about the program", "managed_settings_resolved", "diagnostics"),
        Record("about the program", "retention_sweep", "diagnostics"),
        *(
            Record("answered here", "user_prompt", "diagnostics", {"command_name": name, **BUILTIN})
            for name in ("exit", "context")
        ),
        Record("for the model", "user_prompt", PROMPT, {"command_name": "init", **BUILTIN}),
        Record(
            "a person's own command",
            "user_prompt",
            PROMPT,
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
    agent = agent_of_span(SPANS)
    assert agent is not None
    event = AgentEvent(
        name="claude_code.tool", time_unix_nano=1, scope=SPANS, attributes={"session.id": "s"}
    )

    assert place_span(event, agent) == Place(session="s")
