"""One call of a model that two libraries recorded in two branches of a trace counts once."""

from typing import Any

from evaluators.model import Tokens
from tests.support.conventions import AGENT, model, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

ID = "gen_ai.response.id"
CACHED = "gen_ai.usage.cache_read.input_tokens"


def answer(number: int, parent: int, scope: str, text: str = "a", **more: Any) -> SpanSpec:
    counts = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
    end, own = 20 - number, counts | more
    return model(
        number, number, answer=said(text), parent=parent, scope=scope, attributes=own, end=end
    )


def counted(first: SpanSpec, later: SpanSpec) -> Tokens:
    return trace_of(
        SpanSpec(id=1, end=20), SpanSpec(id=2, parent=1, attributes=AGENT, end=20), first, later
    ).tokens


@for_each(
    "one,two,cached",
    [
        ({ID: "r1"}, {}, None),
        ({}, {ID: "r1"}, None),
        ({ID: "r1", CACHED: 64}, {ID: "r1"}, 64),
        ({ID: "r1"}, {ID: "r1", CACHED: 64}, 64),
        ({CACHED: 0}, {}, 0),
    ],
)
def test_ids_on_one_side_and_other_cached_counts(
    one: dict[str, Any], two: dict[str, Any], cached: int | None
) -> None:
    tokens = counted(answer(3, 2, "instr.a", **one), answer(4, 1, "instr.b", **two))

    assert tokens == Tokens(input=100, output=10, cached=cached)


def test_answers_that_differ_are_two() -> None:
    other_ids = counted(answer(3, 2, "a", **{ID: "r1"}), answer(4, 1, "b", **{ID: "r2"}))
    other_words = counted(answer(3, 2, "a", "yes"), answer(4, 1, "b", "no"))
    one_library = counted(answer(3, 2, "a"), answer(4, 1, "a"))

    assert [t.input for t in (other_ids, other_words, one_library)] == [200] * 3
