"""Content in span events: Azure AI, Strands."""

from collections.abc import Sequence
from typing import Any

from tests.support.conventions import CHAT, HELPER, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump
from tests.support.whole_traces import assert_says_what_happened, usages

Event = tuple[str, dict[str, Any]]
USAGES = usages("gen_ai.usage.", "input_tokens", "output_tokens")


def azure(name: str, **content: Any) -> Event:
    return f"gen_ai.{name}", {"gen_ai.event.content": dump(content)}


def span(attributes: dict[str, Any], *events: Event) -> SpanSpec:
    return SpanSpec(attributes=attributes, events=events)


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
    events = [
        azure("user.message", content=QUESTION, role="user"),
        azure("assistant.message", tool_calls=[CALL], role="assistant"),
        azure("tool.message", content=RESULT, id="c1"),
        azure("assistant.message", content={"text": {"value": ANSWER}}, role="assistant"),
    ]
    trace = trace_of({NAME: "my agent"}, span(run, *events), scope="azure.ai.agents")

    assert_whole(trace)
    assert (trace.session_id, trace.tokens.input) == ("thread_1", 12)


def assert_turn(
    scope: str, root: SpanSpec, first: Sequence[Event], ran: Sequence[Event], last: Sequence[Event]
) -> None:
    """A turn of two model calls around a tool, each with these events."""
    chats = [{**CHAT, **counts} for counts in USAGES]
    trace = trace_of(
        root,
        span(chats[0], *first),
        span(tool("get_weather", "c1"), *ran),
        span(chats[1], *last),
        scope=scope,
    )
    assert_says_what_happened(trace)


def test_a_whole_trace_of_azure_events() -> None:
    """Content in span events as whole JSON (Azure AI inference, Semantic Kernel)."""
    sent = [
        azure("system.message", role="system", content="Be brief."),
        azure("user.message", role="user", content=QUESTION),
    ]
    call = azure("choice", message={"tool_calls": [CALL]}, finish_reason="tool_calls")
    told = azure("tool.message", role="tool", id="c1", content=RESULT)
    done = azure("choice", message={"content": ANSWER}, finish_reason="stop")

    assert_turn("", span(HELPER), [*sent, call], [], [*sent, told, done])


def test_a_whole_trace_of_strands() -> None:
    def message(role: str, *blocks: dict[str, Any], **more: Any) -> Event:
        return f"gen_ai.{role}.message", {"content": dump(blocks), **more}

    def choice(*blocks: dict[str, Any], **more: Any) -> Event:
        return "gen_ai.choice", {"message": dump(blocks), **more}

    use = {"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ARGUMENTS}}
    text = {"text": RESULT}
    back = {"toolResult": {"toolUseId": "c1", "status": "success", "content": [text]}}
    given = ("gen_ai.tool.message", {"content": dump(ARGUMENTS), "id": "c1"})
    user = message("user", {"text": QUESTION})
    sent = [message("system", {"text": "Be brief."}), user]
    agent = {**HELPER, "gen_ai.usage.input_tokens": 250}

    assert_turn(
        "strands.telemetry.tracer",
        span(agent, user, ("gen_ai.choice", {"message": ANSWER})),
        [*sent, choice(use)],
        [given, choice(text, id="c1")],
        [*sent, message("tool", back), choice({"text": ANSWER})],
    )


def test_a_score_among_a_spans_events_is_no_message() -> None:
    score = ("gen_ai.evaluation.result", {"gen_ai.evaluation.explanation": "wrong city"})
    asked = ("gen_ai.user.message", {"content": QUESTION})

    assert trace_of(span(CHAT, score)).input is None
    assert trace_of(span(CHAT, asked, score)).input == QUESTION
