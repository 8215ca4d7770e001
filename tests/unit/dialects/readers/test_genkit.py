"""Genkit."""

from typing import Any

from tests.support.dialect_spans import trace_of, under
from tests.support.weather import QUESTION, compact


def action(subtype: str, name: str, **sides: Any) -> dict[str, Any]:
    own = {key: compact(value) for key, value in sides.items()}
    return under("genkit:", type="action", name=name, **{"metadata:subtype": subtype}, **own)


def test_the_input_of_the_outermost_flow_may_name_the_session_unless_an_attribute_does() -> None:
    given = {"question": QUESTION, "sessionId": "s-1"}
    flow = {**action("flow", "weather", input=given), "genkit:isRoot": True}
    trace = trace_of(flow)

    assert (trace.session_id, trace.session_source, trace.input) == ("s-1", "genkit", QUESTION)
    assert trace_of({**flow, "session.id": "s-2"}).session_id == "s-2"
