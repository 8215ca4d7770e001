"""GitHub Copilot CLI: commands that failed, refusals, and the context before a person's words."""

import json
from typing import Any

import pytest

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import one_call

SCOPE = "github.copilot"


def agent(**attributes: Any) -> SpanSpec:
    given = {"gen_ai.operation.name": "invoke_agent", **attributes}
    return SpanSpec(id=1, name="invoke_agent", end=9, scope=SCOPE, attributes=given)


def tool(*, status: int = 0, message: str = "", **attributes: Any) -> SpanSpec:
    given = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        **{key.replace("__", "."): value for key, value in attributes.items()},
    }
    return SpanSpec(
        id=2, parent=1, end=3, scope=SCOPE, attributes=given, status=status, message=message
    )


def test_an_exit_code_other_than_nought_is_a_failure_with_the_output_as_its_text() -> None:
    failed = tool(process__exit__code=1, gen_ai__tool__call__result="no such file")
    done = tool(process__exit__code=0, gen_ai__tool__call__result="4.7.11")

    assert one_call(trace_of(agent(), failed)).error == "no such file"
    assert one_call(trace_of(agent(), done)).error is None


@pytest.mark.parametrize(("kind", "by"), [("denied", "policy"), ("rejected", "user")])
def test_a_refusal_names_who_refused(kind: str, by: str) -> None:
    call = one_call(
        trace_of(agent(), tool(status=2, message="Permission denied", error__type=kind))
    )

    assert (call.rejected, call.error) == (by, "Permission denied")


def test_the_time_before_a_persons_words_is_none_of_them() -> None:
    text = "<current_datetime>2026-11-22T07:54:00Z</current_datetime>\n\nRemove the folder."
    messages = [{"role": "user", "parts": [{"type": "text", "content": text}]}]

    trace = trace_of(agent(**{"gen_ai.input.messages": json.dumps(messages)}))

    assert (trace.input, trace.agent) == ("Remove the folder.", "copilot")
