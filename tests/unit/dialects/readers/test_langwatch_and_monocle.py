"""A turn as LangWatch 1.4 and Monocle 0.8 write it: question, answer, tool, counts, session and names."""

from typing import Any

from evaluators.model import Tokens, Trace
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.weather import dump, one_call

ASKED, SAID = "How many pallets?", "There are 12."
CALL = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"bay": 4}'}}


def assert_counted(trace: Trace) -> None:
    """Question, answer, agent, and the call of the one tool that was offered."""
    assert (trace.input, trace.output, trace.agent) == (ASKED, SAID, "clerk")
    assert [tool.name for tool in trace.tools_offered] == ["count"]
    call = one_call(trace)
    assert (call.id, call.arguments, call.result) == ("c1", {"bay": 4}, "12")


def typed(kind: str, value: Any) -> str:
    return dump({"type": kind, "value": value})


def langwatch(name: str, kind: str, metadata: str = "{}", **more: Any) -> dict[str, Any]:
    own = under("langwatch.", span__type=kind, **more)
    return {NAME: name, "metadata": metadata, **own}


def test_a_turn_of_langwatch() -> None:
    tools = [{"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}]
    model = {
        "metrics": dump({"prompt_tokens": 10, "completion_tokens": 2}),
        "params": dump({"tools": tools}),
        "input": typed("chat_messages", [{"role": "user", "content": ASKED}]),
        "output": typed("chat_messages", [{"role": "assistant", "tool_calls": [CALL]}]),
    }
    ran = {
        "input": typed("text", "{'bay': 4}"),
        "output": typed("chat_messages", [{"role": "unknown", "content": "12"}]),
    }
    metadata = dump({"thread_id": "lw-1", "user_id": "ada"})
    words = {"input": typed("json", {"question": ASKED}), "output": typed("text", SAID)}
    trace = trace_of(
        langwatch("clerk", "agent", metadata, **words),
        langwatch("llm", "llm", **model),
        langwatch("count", "tool", **ran),
    )

    assert_counted(trace)
    assert (trace.session_id, trace.user_id) == ("lw-1", "ada")
    assert trace.tokens == Tokens(input=10, output=2)


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


def monocle(kind: str, said: dict[tuple[str, str], Any], **entity: str) -> SpanSpec:
    """A span with what was said in its events, of an entity."""
    session = {"span.type": kind, "scope.agentic.session": "mo-1"}
    events = [(name, {key: value}) for (name, key), value in said.items()]
    attributes = {**session, **under("entity.", **entity)}
    return SpanSpec(name="step", attributes=attributes, events=events)


def test_a_turn_of_monocle() -> None:
    call = {"name": "count", "args": {"bay": 4}, "id": "c1", "type": "tool_call"}
    into, out, counts = ("data.input", "input"), ("data.output", "response"), "metadata"
    asked = str([dump({"system": "Count."}), dump({"human": ASKED})])
    turn = {into: dump([ASKED]), out: SAID}
    model = {into: asked, out: dump({"ai": call}), (counts, "prompt_tokens"): 10}
    llm = {"2.name": "gpt-4o-mini", "2.type": "model.llm.gpt-4o-mini"}
    tool = {"1.name": "count", "1.description": "Counts.", "1.type": "tool.x"}
    trace = trace_of(
        monocle("agentic.turn", turn),
        monocle("agentic.invocation", turn, **{"1.name": "clerk", "1.type": "agent.langgraph"}),
        monocle("inference.framework", model, **llm),
        monocle("agentic.tool.invocation", {into: "{'bay': 4}", out: "12"}, **tool),
        scope="monocle_apptrace",
    )

    assert_counted(trace)
    assert (trace.session_id, trace.models, trace.system) == ("mo-1", ("gpt-4o-mini",), "Count.")
    assert trace.tokens.input == 10
