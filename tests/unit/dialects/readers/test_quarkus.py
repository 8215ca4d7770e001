"""Quarkus LangChain4j."""

import pytest

from tests.support.conventions import tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, dump, one_call

SCOPE = "io.quarkus.opentelemetry"


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        (QUESTION, QUESTION),
        (f"You are a clerk.\n{QUESTION}", QUESTION),
        (f"You are a clerk.\n{QUESTION}\nnull\nrain", None),
        (f"Be kind.\n{QUESTION}", None),
        (f"{QUESTION}\nnull\nrain", None),
    ],
)
def test_a_question_is_read_only_where_nothing_but_a_system_prompt_was_sent_too(
    prompt: str, question: str | None
) -> None:
    given = {"gen_ai.request.model": "gpt-4o-mini", "gen_ai.response.id": "r"}
    given |= {"gen_ai.prompt": prompt, "gen_ai.completion": ANSWER}
    given |= {"gen_ai.response.model": "gpt-4o-mini"}
    trace = trace_of({NAME: "completion", **given}, scope=SCOPE)

    assert (trace.input, trace.output, trace.dialects) == (question, ANSWER, ("quarkus",))
    assert len(trace.model_calls) == 1


def raised(**more: str) -> SpanSpec:
    return SpanSpec(
        id=1,
        name="langchain4j.tools.book",
        scope=SCOPE,
        attributes=tool("book", **{"gen_ai.tool.call.arguments": dump(ARGUMENTS), **more}),
        events=[("exception", {"exception.type": "E", "exception.message": "timed out"})],
    )


def test_a_tool_that_raised_and_has_no_result_failed() -> None:
    assert one_call(trace_of(raised())).error == "timed out"


def test_a_tool_that_raised_and_came_to_a_result_did_not_fail() -> None:
    assert one_call(trace_of(raised(**{"gen_ai.tool.call.result": "booked"}))).error is None
