"""LangSmith's export of its runs."""

from typing import Any

from tests.support.dialect_spans import NAME, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump
from tests.support.whole_traces import OPENAI_TOOL, assert_whole_turn, usages


def test_langsmith_exports_its_runs() -> None:
    trace = trace_of(
        {
            NAME: "AgentExecutor",
            "langsmith.span.kind": "chain",
            "langsmith.trace.name": "AgentExecutor",
            "langsmith.metadata.session_id": "s-1",
            "gen_ai.prompt": dump({"input": QUESTION}),
            "gen_ai.completion": dump({"output": ANSWER}),
        },
        {
            NAME: "get_weather",
            "langsmith.span.kind": "tool",
            "gen_ai.prompt": dump({"input": "{'city': 'Paris'}"}),
            "gen_ai.completion": dump({"output": RESULT}),
        },
        scope="langsmith",
    )

    assert_whole(trace)
    assert trace.session_id == "s-1"


def test_a_whole_trace_of_langsmith() -> None:
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    call = {"name": "get_weather", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
    asking = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
    }

    def generations(kwargs: Any) -> str:
        return dump(
            {
                "generations": [
                    [{"text": "", "message": {**asking, "kwargs": {"type": "ai", **kwargs}}}]
                ]
            }
        )

    def human(text: str) -> dict[str, Any]:
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["x", "HumanMessage"],
            "kwargs": {"content": text, "type": "human"},
        }

    given = dump(
        {
            "messages": [
                [
                    {
                        **human("Be brief."),
                        "id": ["x", "SystemMessage"],
                        "kwargs": {"content": "Be brief."},
                    },
                    human(QUESTION),
                ]
            ]
        }
    )
    kind = {"langsmith.span.kind": "llm", "tools": dump([OPENAI_TOOL])}
    assert_whole_turn(
        agents=(),
        offered=False,
        scope="langsmith",
        root={
            "langsmith.span.kind": "chain",
            "gen_ai.prompt": dump({"messages": [human(QUESTION)]}),
        },
        first={
            **kind,
            **one,
            "gen_ai.prompt": given,
            "gen_ai.completion": generations({"content": "", "tool_calls": [call]}),
        },
        tool={
            "langsmith.span.kind": "tool",
            "gen_ai.prompt": dump({"input": str(ARGUMENTS)}),
            "gen_ai.completion": dump(
                {"output": {"type": "tool", "content": RESULT, "tool_call_id": "c1"}}
            ),
        },
        last={**kind, **two, "gen_ai.completion": generations({"content": ANSWER})},
    )
