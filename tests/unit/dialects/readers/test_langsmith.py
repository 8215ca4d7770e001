"""LangSmith's export of its runs."""

from typing import Any

from tests.support.dialect_spans import NAME, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump
from tests.support.whole_traces import OPENAI_TOOL, assert_whole_turn, usages


def run(kind: str, given: Any = None, came: Any = None, **more: Any) -> dict[str, Any]:
    """The attributes of a run, with its sides as JSON where it has them."""
    sides = {"gen_ai.prompt": given, "gen_ai.completion": came}
    said = {key: dump(side) for key, side in sides.items() if side is not None}
    return {"langsmith.span.kind": kind, **said, **more}


def test_langsmith_exports_its_runs() -> None:
    name = "AgentExecutor"
    ids = {"langsmith.trace.name": name, "langsmith.metadata.session_id": "s-1"}
    trace = trace_of(
        {NAME: name, **run("chain", {"input": QUESTION}, {"output": ANSWER}, **ids)},
        {NAME: "get_weather", **run("tool", {"input": str(ARGUMENTS)}, {"output": RESULT})},
        scope="langsmith",
    )

    assert_whole(trace)
    assert trace.session_id == "s-1"


def test_a_whole_trace_of_langsmith() -> None:
    def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
        path = ["langchain", "schema", "messages", kind]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}

    def generations(**kwargs: Any) -> dict[str, Any]:
        message = lc("AIMessage", type="ai", **kwargs)
        return {"generations": [[{"text": "", "message": message}]]}

    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    tools = {"tools": dump([OPENAI_TOOL])}
    call = {"name": "get_weather", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
    human = lc("HumanMessage", content=QUESTION, type="human")
    sent = {"messages": [[lc("SystemMessage", content="Be brief."), human]]}
    told = {"output": {"type": "tool", "content": RESULT, "tool_call_id": "c1"}}
    assert_whole_turn(
        agents=(),
        offered=False,
        scope="langsmith",
        root=run("chain", {"messages": [human]}),
        first=run("llm", sent, generations(content="", tool_calls=[call]), **tools, **one),
        tool=run("tool", {"input": str(ARGUMENTS)}, told),
        last=run("llm", came=generations(content=ANSWER), **tools, **two),
    )
