"""Laminar, and OpenHands, which is traced with it."""

from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, one_call

SESSION = {"lmnr.association.properties.session_id": "s-1"}


def span(number: int, kind: str, name: str, parent: int = 1, **sides: Any) -> SpanSpec:
    given = {"lmnr.span.type": kind, **SESSION}
    given |= {f"lmnr.span.{side}": compact(value) for side, value in sides.items()}
    end = 99 if number == 1 else number * 10 + 1
    return SpanSpec(
        id=number, parent=parent, name=name, attributes=given, start=number * 10, end=end
    )


def test_functions_and_tools_of_laminar() -> None:
    trace = trace_of(
        span(1, "DEFAULT", "answer", parent=0, input={"question": QUESTION}, output=ANSWER),
        span(2, "TOOL", "get_weather", input=ARGUMENTS, output=RESULT),
    )

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "answer")
    assert (trace.session_id, trace.session_source) == (
        "s-1",
        "lmnr.association.properties.session_id",
    )
    call = one_call(trace)
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def observed(exit_code: int, *, is_error: bool = False) -> Trace:
    action = {"command": "cat notes", "is_input": False, "timeout": None, "kind": "TerminalAction"}
    return trace_of(
        span(1, "DEFAULT", "conversation", parent=0),
        span(
            2,
            "TOOL",
            "TerminalAction",
            input={"action": action},
            output={
                "content": [{"type": "text", "text": "no such file"}],
                "is_error": is_error,
                "exit_code": exit_code,
                "metadata": {"exit_code": exit_code, "working_dir": "/srv"},
            },
        ),
    )


@pytest.mark.parametrize(("code", "is_error", "failed"), [(0, False, False), (1, False, True)])
def test_an_action_of_openhands_is_its_tool(code: int, is_error: bool, failed: bool) -> None:
    call = one_call(observed(code, is_error=is_error))

    assert (call.name, call.arguments) == ("terminal", {"command": "cat notes"})
    assert str(call.result).startswith("no such file\n[Current working directory: /srv]")
    assert (call.error is not None) is failed


def test_an_action_that_the_tool_refused_failed() -> None:
    assert one_call(observed(0, is_error=True)).error


def test_the_action_of_a_servers_tool_does_not_name_it() -> None:
    action = {"data": ARGUMENTS, "kind": "MCPToolAction"}
    trace = trace_of(
        span(1, "DEFAULT", "conversation", parent=0),
        span(2, "TOOL", "MCPToolAction", input={"action": action}, output={"content": []}),
    )
    assert trace.tool_calls == ()
