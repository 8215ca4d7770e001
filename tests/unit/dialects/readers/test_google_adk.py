"""Google's ADK, also 1.x."""

from typing import Any

from tests.support.conventions import tool
from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.openinference import SCOPE, of
from tests.support.table import for_each
from tests.support.weather import ARGUMENTS, compact, dump, one_call

ADK = "gcp.vertex.agent"


def adk(**own: Any) -> dict[str, Any]:
    """Attributes of ADK's own; what is no text as JSON."""
    texts = {key: value if isinstance(value, str) else dump(value) for key, value in own.items()}
    return under(f"{ADK}.", **texts)


@for_each(
    "reported,error",
    [
        ({"status": "error", "error_message": "timed out"}, "timed out"),
        ({"status": "error", "error_message": "timed out", "city": "Paris"}, "timed out"),
        ({"status": "error", "message": "timed out"}, "timed out"),
        ({"status": "error"}, "error"),
        ({"status": "error", "city": "Paris", "orders": 3}, None),
        ({"status": "error", "orders": 3}, None),
    ],
)
def test_adk_tools_that_report_failure_as_its_documentation_says(
    reported: dict[str, Any], error: str | None
) -> None:
    name = {NAME: "execute_tool get_weather"}
    own = adk(tool_call_args=compact(ARGUMENTS), tool_response=compact(reported))
    response = compact({"id": "a1", "name": "get_weather", "response": reported})
    sides = {"input__value": compact(ARGUMENTS), "output__value": response}
    beside = of("TOOL", tool__name="get_weather", **sides)

    assert one_call(trace_of({**name, **tool(), **own}, scope=ADK)).error == error
    assert one_call(trace_of({**name, **beside}, scope=SCOPE + "google_adk")).error == error


def test_two_older_adk_calls_without_an_id_are_two_calls_and_emptied_ones_say_nothing() -> None:
    emptied = adk(tool_call_args="{}", tool_response="{}")
    used = {**tool("get_weather", "<not specified>"), **emptied}
    trace = trace_of({}, used, used, scope=ADK)

    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [(None, None, None)] * 2
