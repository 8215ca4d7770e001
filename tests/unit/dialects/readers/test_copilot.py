"""GitHub Copilot CLI: commands that failed, refusals, and the context before a person's words."""

from typing import Any

from evaluators.model import ToolCall
from tests.support.conventions import AGENT, asked, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import one_call

SCOPE = "github.copilot"
AROUND = {NAME: "invoke_agent", **AGENT}


def ran(own: dict[str, Any], **more: Any) -> ToolCall:
    """A call of a command, in an agent."""
    return one_call(trace_of(AROUND, SpanSpec(attributes=own, **more), scope=SCOPE))


@for_each("code,error", [(1, "no such file"), (0, None)])
def test_an_exit_code_other_than_nought_is_a_failure_with_the_output_as_its_text(
    code: int, error: str | None
) -> None:
    own = tool("bash", result="no such file") | {"process.exit.code": code}

    assert ran(own).error == error


@for_each("kind,by", [("denied", "policy"), ("rejected", "user")])
def test_a_refusal_names_who_refused(kind: str, by: str) -> None:
    refused = tool("bash", **{"error.type": kind})

    call = ran(refused, status=2, message="Permission denied")

    assert (call.rejected, call.error) == (by, "Permission denied")


def test_the_time_before_a_persons_words_is_no_part_of_them() -> None:
    time = "<current_datetime>2026-11-22T07:54:00Z</current_datetime>"
    sent = {"gen_ai.input.messages": asked(f"{time}\n\nRemove the folder.")}

    trace = trace_of({**AROUND, **sent}, scope=SCOPE)

    assert (trace.input, trace.agent) == ("Remove the folder.", "copilot")
