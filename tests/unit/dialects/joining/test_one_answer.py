"""One call of a model that two libraries recorded, beside each other or in two branches of a trace, counts once."""

from typing import Any

from evaluators.model import Tokens
from tests.support.conventions import AGENT, model, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

ID = "gen_ai.response.id"
CACHED = "gen_ai.usage.cache_read.input_tokens"


def answer(number: int, scope: str, text: str = "a", output: int = 10, **more: Any) -> SpanSpec:
    """Number 3 is in the agent, number 4 beside it and within its time."""
    counts = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": output}
    own = counts | more.pop("own", {})
    place: dict[str, Any] = {"parent": 5 - number, "end": 20 - number, **more}
    return model(number, number, answer=said(text), scope=scope, attributes=own, **place)


def counted(first: SpanSpec, later: SpanSpec) -> Tokens:
    agent = SpanSpec(id=2, parent=1, attributes=AGENT, end=20)
    return trace_of(SpanSpec(id=1, end=20), agent, first, later).tokens


R1: dict[str, Any] = {ID: "r1"}


@for_each(
    "one,two,cached",
    [
        (R1, {}, None),
        ({}, R1, None),
        (R1 | {CACHED: 64}, R1, 64),
        (R1, R1 | {CACHED: 64}, 64),
        ({CACHED: 0}, {}, 0),
    ],
)
def test_ids_on_one_side_and_other_cached_counts(
    one: dict[str, Any], two: dict[str, Any], cached: int | None
) -> None:
    tokens = counted(answer(3, "instr.a", own=one), answer(4, "instr.b", own=two))

    assert tokens == Tokens(input=100, output=10, cached=cached)


FIRST = answer(3, "a.b", own=R1, output=4, parent=1)


def beside(scope: str, own: dict[str, Any], **more: Any) -> SpanSpec:
    """What another library says of an answer: it counts differently."""
    return answer(4, scope, own=own, output=3, **more)


@for_each(
    "first,second,output",
    [
        (FIRST, beside("sdk", R1), 3),
        (answer(3, "a.b", own=R1, output=3, parent=1), beside("sdk", {}), 3),  # by counts
        (FIRST, beside("sdk", R1, start=18, end=19), 7),  # one after the other
        (FIRST, beside("a.b", R1), 7),  # the same instrumentation
        (FIRST, beside("sdk", {ID: "r2"}), 7),  # another answer
    ],
)
def test_an_sdk_and_an_instrumentation_that_record_one_answer_are_one_call(
    first: SpanSpec, second: SpanSpec, output: int
) -> None:
    tokens = counted(first, second)

    assert (tokens.input, tokens.output) == (100 if output == 3 else 200, output)


@for_each(
    "first,later",
    [
        (answer(3, "a", own=R1), answer(4, "b", own={ID: "r2"})),  # other ids
        (answer(3, "a", "yes"), answer(4, "b", "no")),  # other words
        (answer(3, "a"), answer(4, "a")),  # one library
    ],
)
def test_answers_that_differ_are_two(first: SpanSpec, later: SpanSpec) -> None:
    assert counted(first, later).input == 200
