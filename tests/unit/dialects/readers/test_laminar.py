"""Laminar, and OpenHands, which is traced with it."""

from typing import Any

from evaluators.model import ToolCall
from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.table import for_each
from tests.support.weather import ARGUMENTS, compact

SESSION = "lmnr.association.properties.session_id"


def span(kind: str, name: str, **sides: Any) -> dict[str, Any]:
    own = {side: compact(value) for side, value in sides.items()}
    return {NAME: name, SESSION: "s-1", **under("lmnr.span.", type=kind, **own)}


def acted(name: str, action: dict[str, Any], output: dict[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of a conversation with one action of OpenHands."""
    tool = span("TOOL", name, input={"action": {**action, "kind": name}}, output=output)
    return trace_of(span("DEFAULT", "conversation"), tool).tool_calls


@for_each("code,is_error,failed", [(0, False, False), (1, False, True), (0, True, True)])
def test_an_action_of_openhands_is_its_tool(code: int, is_error: bool, failed: bool) -> None:
    action = {"command": "cat notes", "is_input": False, "timeout": None}
    output = {
        "content": [{"type": "text", "text": "no such file"}],
        "is_error": is_error,
        "exit_code": code,
        "metadata": {"exit_code": code, "working_dir": "/srv"},
    }

    (call,) = acted("TerminalAction", action, output)

    assert (call.name, call.arguments) == ("terminal", {"command": "cat notes"})
    assert str(call.result).startswith("no such file\n[Current working directory: /srv]")
    assert (call.error is not None) is failed


def test_the_action_of_a_servers_tool_does_not_name_it() -> None:
    assert acted("MCPToolAction", {"data": ARGUMENTS}, {"content": []}) == ()
