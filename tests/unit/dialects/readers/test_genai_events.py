"""Content in span events: Azure AI, Strands."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump
from tests.support.whole_traces import assert_says_what_happened, usages


def event(name: str, **content: Any) -> tuple[str, dict[str, Any]]:
    return f"gen_ai.{name}.message", {
        "gen_ai.system": "az.ai.agents",
        "gen_ai.thread.id": "thread_1",
        "gen_ai.event.content": dump(content),
    }


def test_an_azure_thread_run_is_read_from_its_events() -> None:
    run = {
        "gen_ai.system": "az.ai.agents",
        "gen_ai.operation.name": "process_thread_run",
        "gen_ai.thread.id": "thread_1",
        "gen_ai.agent.id": "asst_1",
        "gen_ai.response.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 6,
    }
    trace = trace_of(
        {NAME: "my agent"},
        SpanSpec(
            id=2,
            parent=1,
            name="process_thread_run",
            scope="azure.ai.agents",
            start=1,
            end=8,
            attributes=run,
            events=[
                event("user", content=QUESTION, role="user"),
                event("assistant", tool_calls=[CALL], role="assistant"),
                event("tool", content=RESULT, id="c1"),
                event("assistant", content={"text": {"value": ANSWER}}, role="assistant"),
            ],
        ),
    )

    assert_whole(trace)
    assert (trace.session_id, trace.tokens.input) == ("thread_1", 12)


def test_a_whole_trace_of_azure_events() -> None:
    """Content in span events as whole JSON (Azure AI inference, Semantic Kernel)."""
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    kind = {"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference"}
    call = dump({"message": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"})
    done = dump({"message": {"content": ANSWER}, "finish_reason": "stop"})

    def event(name: str, content: Any) -> tuple[str, dict[str, Any]]:
        return name, {
            "gen_ai.event.content": content if isinstance(content, str) else dump(content)
        }

    asked = [
        event("gen_ai.system.message", {"role": "system", "content": "Be brief."}),
        event("gen_ai.user.message", {"role": "user", "content": QUESTION}),
    ]
    history = [
        *asked,
        event("gen_ai.tool.message", {"role": "tool", "id": "c1", "content": RESULT}),
    ]
    trace = trace_of(
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"},
        SpanSpec(
            id=2,
            parent=1,
            attributes={**kind, **one},
            events=[*asked, event("gen_ai.choice", call)],
            start=1,
            end=2,
        ),
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
        },
        SpanSpec(
            id=4,
            parent=1,
            attributes={**kind, **two},
            events=[*history, event("gen_ai.choice", done)],
            start=5,
            end=6,
        ),
    )
    assert_says_what_happened(trace)


def test_a_whole_trace_of_strands() -> None:
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    use = {"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ARGUMENTS}}
    back = {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": RESULT}]}}
    system = ("gen_ai.system.message", {"content": dump([{"text": "Be brief."}])})
    user = ("gen_ai.user.message", {"content": dump([{"text": QUESTION}])})
    scope = "strands.telemetry.tracer"
    chat = {"gen_ai.operation.name": "chat"}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "c1",
    }
    tool_events = [
        ("gen_ai.tool.message", {"content": dump(ARGUMENTS), "id": "c1"}),
        ("gen_ai.choice", {"message": dump([{"text": RESULT}]), "id": "c1"}),
    ]
    root = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.usage.input_tokens": 250,
    }
    trace = trace_of(
        SpanSpec(id=1, attributes=root, end=90, scope=scope, events=[user, ("gen_ai.choice", {"message": ANSWER})]),
        SpanSpec(id=2, parent=1, attributes={**chat, **one}, scope=scope, start=1, end=2,
             events=[system, user, ("gen_ai.choice", {"message": dump([use])})]),
        SpanSpec(id=3, parent=1, attributes=tool, scope=scope, start=3, end=4, events=tool_events),
        SpanSpec(id=4, parent=1, attributes={**chat, **two}, scope=scope, start=5, end=6,
             events=[system, user, ("gen_ai.tool.message", {"content": dump([back])}),
                     ("gen_ai.choice", {"message": dump([{"text": ANSWER}])})]),
    )  # fmt: skip
    assert_says_what_happened(trace)


def test_a_score_among_a_spans_events_is_no_message() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    score = ("gen_ai.evaluation.result", {"gen_ai.evaluation.explanation": "wrong city"})
    asked = ("gen_ai.user.message", {"content": QUESTION})

    alone = trace_of(SpanSpec(id=1, name="chat", attributes=chat, events=(score,)))
    beside = trace_of(SpanSpec(id=1, name="chat", attributes=chat, events=(asked, score)))

    assert (alone.input, beside.input) == (None, QUESTION)
