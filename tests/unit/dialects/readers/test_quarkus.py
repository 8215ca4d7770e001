"""Quarkus LangChain4j."""

from tests.support.conventions import tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, dump, one_call

SCOPE = "io.quarkus.opentelemetry"


@for_each(
    "prompt,question",
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
    models = {"request__model": "gpt-4o-mini", "response__model": "gpt-4o-mini"}
    given = under("gen_ai.", prompt=prompt, completion=ANSWER, response__id="r", **models)
    trace = trace_of({NAME: "completion", **given}, scope=SCOPE)

    assert (trace.input, trace.output, trace.dialects) == (question, ANSWER, ("quarkus",))
    assert len(trace.model_calls) == 1


@for_each("result,error", [(None, "timed out"), ("booked", None)])
def test_a_tool_that_raised_failed_unless_it_came_to_a_result(
    result: str | None, error: str | None
) -> None:
    raised = ("exception", {"exception.type": "E", "exception.message": "timed out"})
    own = tool("book", arguments=dump(ARGUMENTS), result=result)
    ran = SpanSpec(name="langchain4j.tools.book", attributes=own, events=[raised])

    assert one_call(trace_of(ran, scope=SCOPE)).error == error
