"""A turn as LangWatch 1.4 and Monocle 0.8 write it: question, answer, tool, counts, session and names."""

from typing import Any

from evaluators.model import Tokens
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import dump

ASKED, SAID = "How many pallets?", "There are 12."
CALL = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"bay": 4}'}}


def typed(kind: str, value: Any) -> str:
    return dump({"type": kind, "value": value})


def langwatch(number: int, name: str, kind: str, metadata: str = "{}", **more: Any) -> SpanSpec:
    attributes = {"langwatch.span.type": kind, "metadata": metadata}
    attributes |= {f"langwatch.{key}": value for key, value in more.items()}
    parent = int(number != 1)
    return SpanSpec(
        id=number, parent=parent, name=name, attributes=attributes, start=number, end=number + 1
    )


def test_a_turn_of_langwatch() -> None:
    model = {"metrics": dump({"prompt_tokens": 10, "completion_tokens": 2})}
    tools = [{"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}]
    metadata = dump({"thread_id": "lw-1", "user_id": "ada"})
    words = {"input": typed("json", {"question": ASKED}), "output": typed("text", SAID)}
    root = langwatch(1, "clerk", "agent", metadata, **words)
    asked = {"role": "user", "content": ASKED}
    trace = trace_of(
        root,
        langwatch(
            2,
            "llm",
            "llm",
            **model,
            params=dump({"tools": tools}),
            input=typed("chat_messages", [asked]),
            output=typed("chat_messages", [{"role": "assistant", "tool_calls": [CALL]}]),
        ),
        langwatch(
            3,
            "count",
            "tool",
            input=typed("text", "{'bay': 4}"),
            output=typed("chat_messages", [{"role": "unknown", "content": "12"}]),
        ),
    )

    assert (trace.input, trace.output, trace.agent) == (ASKED, SAID, "clerk")
    assert (trace.session_id, trace.user_id) == ("lw-1", "ada")
    assert trace.tokens == Tokens(input=10, output=2)
    assert [tool.name for tool in trace.tools_offered] == ["count"]
    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [("c1", {"bay": 4}, "12")]


def test_the_state_of_a_graph_under_langwatch_is_of_this_turn_and_names_the_agent() -> None:
    state: list[dict[str, Any]] = [
        {"content": "And before?", "id": "m1"},
        {"content": "", "tool_calls": [{**CALL, "id": "c0"}], "response_metadata": {}},
        {"content": "3", "tool_call_id": "c0", "name": "count"},
        {"content": ASKED, "id": "m2"},
    ]
    graph = langwatch(2, "clerk", "chain", output=typed("json", {"messages": state}))
    attributes = {
        "langwatch.span.type": "chain",
        "langwatch.input": typed("json", {"messages": state}),
    }
    node = SpanSpec(id=3, parent=2, name="model", start=3, end=4, attributes=attributes)
    trace = trace_of(langwatch(1, "turn", "span", input=typed("text", ASKED)), graph, node)

    assert (trace.agent, trace.tool_calls) == ("clerk", ())


def monocle(number: int, kind: str, said: dict[tuple[str, str], Any], **more: Any) -> SpanSpec:
    attributes = {"span.type": kind, "scope.agentic.session": "mo-1"}
    events = [(name, {key: value}) for (name, key), value in said.items()]
    return SpanSpec(
        id=number,
        parent=int(number != 1),
        name="step",
        scope="monocle_apptrace",
        attributes={**attributes, **more},
        events=events,
        start=number,
        end=number + 1,
    )


def test_a_turn_of_monocle() -> None:
    call = {"name": "count", "args": {"bay": 4}, "id": "c1", "type": "tool_call"}
    into, out = ("data.input", "input"), ("data.output", "response")
    model = {"entity.2.name": "gpt-4o-mini", "entity.2.type": "model.llm.gpt-4o-mini"}
    agent = {"entity.1.name": "clerk", "entity.1.type": "agent.langgraph"}
    tool = {"entity.1.name": "count", "entity.1.description": "Counts.", "entity.1.type": "tool.x"}
    asked = str([dump({"system": "Count."}), dump({"human": ASKED})])
    trace = trace_of(
        monocle(1, "agentic.turn", {into: dump([ASKED]), out: SAID}),
        monocle(2, "agentic.invocation", {into: dump([ASKED]), out: SAID}, **agent),
        monocle(
            3,
            "inference.framework",
            {into: asked, out: dump({"ai": call}), ("metadata", "prompt_tokens"): 10},
            **model,
        ),
        monocle(4, "agentic.tool.invocation", {into: "{'bay': 4}", out: "12"}, **tool),
    )

    assert (trace.input, trace.output, trace.agent) == (ASKED, SAID, "clerk")
    assert (trace.session_id, trace.models, trace.system) == ("mo-1", ("gpt-4o-mini",), "Count.")
    assert trace.tokens.input == 10
    assert [tool.name for tool in trace.tools_offered] == ["count"]
    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [("c1", {"bay": 4}, "12")]
