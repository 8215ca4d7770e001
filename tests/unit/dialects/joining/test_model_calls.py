"""One model call, recorded by a vendor's SDK and by an instrumentation beside it."""

from typing import Any

import pytest

from tests.support.conventions import ROOT, chat
from tests.support.dialect_spans import SpanSpec, trace_of


def counted(span: int, start: int, end: int, *, scope: str, **attributes: Any) -> SpanSpec:
    usage = {
        f"gen_ai.{key.replace('__', '.')}": value
        for key, value in attributes.items()
        if value is not None
    }
    return chat(span, start, end, scope=scope, attributes=usage)


def test_an_sdk_and_an_instrumentation_that_count_one_answer_differently_are_one_call() -> None:
    trace = trace_of(
        ROOT,
        counted(
            2, 1, 9, scope="a.b", response__id="m1", usage__input_tokens=5, usage__output_tokens=4
        ),
        counted(
            3, 2, 8, scope="sdk", response__id="m1", usage__input_tokens=5, usage__output_tokens=3
        ),
    )

    assert len(trace.model_calls) == 1
    assert (trace.tokens.input, trace.tokens.output) == (5, 3)


def test_an_sdk_without_response_ids_is_recognised_by_its_counts() -> None:
    trace = trace_of(
        ROOT,
        counted(
            2, 1, 9, scope="a.b", response__id="m1", usage__input_tokens=5, usage__output_tokens=3
        ),
        counted(3, 2, 8, scope="sdk", usage__input_tokens=5, usage__output_tokens=3),
    )

    assert (trace.tokens.input, trace.tokens.output) == (5, 3)


@pytest.mark.parametrize(
    ("start", "end", "scope", "id_"),
    [(10, 12, "sdk", "m1"), (2, 8, "a.b", "m1"), (2, 8, "sdk", "m2")],
    ids=["one after the other", "the same instrumentation", "another answer"],
)
def test_two_answers_stay_two_calls(start: int, end: int, scope: str, id_: str) -> None:
    trace = trace_of(
        ROOT,
        counted(
            2, 1, 9, scope="a.b", response__id="m1", usage__input_tokens=5, usage__output_tokens=4
        ),
        counted(
            3,
            start,
            end,
            scope=scope,
            response__id=id_,
            usage__input_tokens=5,
            usage__output_tokens=3,
        ),
    )

    assert (trace.tokens.input, trace.tokens.output) == (10, 7)
