"""One model call, recorded by a vendor's SDK and by an instrumentation beside it."""

from tests.support.conventions import ROOT, model
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each


def counted(
    span: int, answer: str | None, output: int, start: int, end: int, scope: str
) -> SpanSpec:
    usage = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": output}
    usage |= {} if answer is None else {"gen_ai.response.id": answer}
    return model(span, start, end=end, scope=scope, attributes=usage)


FIRST = counted(2, "m1", 4, 1, 9, "a.b")


@for_each(
    "first,second,tokens",
    [
        (FIRST, counted(3, "m1", 3, 2, 8, "sdk"), (5, 3)),  # they count one answer differently
        (counted(2, "m1", 3, 1, 9, "a.b"), counted(3, None, 3, 2, 8, "sdk"), (5, 3)),  # by counts
        (FIRST, counted(3, "m1", 3, 10, 12, "sdk"), (10, 7)),  # one after the other
        (FIRST, counted(3, "m1", 3, 2, 8, "a.b"), (10, 7)),  # the same instrumentation
        (FIRST, counted(3, "m2", 3, 2, 8, "sdk"), (10, 7)),  # another answer
    ],
)
def test_an_sdk_and_an_instrumentation_that_record_one_answer_are_one_call(
    first: SpanSpec, second: SpanSpec, tokens: tuple[int, int]
) -> None:
    trace = trace_of(ROOT, first, second)

    assert (trace.tokens.input, trace.tokens.output) == tokens
    assert len(trace.model_calls) == tokens[0] // 5
