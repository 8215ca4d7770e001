"""A turn as LangWatch 1.4 and Monocle 0.8 write it: question, answer, tool, counts, session and names."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.weather import dump

ASKED, SAID = "How many pallets?", "There are 12."
CALL = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"bay": 4}'}}


def typed(kind: str, value: Any) -> str:
    return dump({"type": kind, "value": value})


def langwatch(name: str, kind: str, metadata: str = "{}", **more: Any) -> dict[str, Any]:
    own = under("langwatch.", span__type=kind, **more)
    return {NAME: name, "metadata": metadata, **own}


def test_the_state_of_a_graph_under_langwatch_is_of_this_turn_and_names_the_agent() -> None:
    state: list[dict[str, Any]] = [
        {"content": "And before?", "id": "m1"},
        {"content": "", "tool_calls": [{**CALL, "id": "c0"}], "response_metadata": {}},
        {"content": "3", "tool_call_id": "c0", "name": "count"},
        {"content": ASKED, "id": "m2"},
    ]
    said = typed("json", {"messages": state})
    chain = under("langwatch.", span__type="chain", input=said)
    trace = trace_of(
        langwatch("turn", "span", input=typed("text", ASKED)),
        langwatch("clerk", "chain", output=said),
        SpanSpec(parent=2, name="model", attributes=chain),
    )

    assert (trace.agent, trace.tool_calls) == ("clerk", ())
