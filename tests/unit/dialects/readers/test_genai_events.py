"""Content in span events: Azure AI, Strands."""

from typing import Any

from tests.support.conventions import CHAT
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL, assert_whole
from tests.support.weather import ANSWER, QUESTION, RESULT, dump

Event = tuple[str, dict[str, Any]]


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


def test_a_score_among_a_spans_events_is_no_message() -> None:
    score = ("gen_ai.evaluation.result", {"gen_ai.evaluation.explanation": "wrong city"})
    asked = ("gen_ai.user.message", {"content": QUESTION})

    assert trace_of(span(CHAT, score)).input is None
    assert trace_of(span(CHAT, asked, score)).input == QUESTION
