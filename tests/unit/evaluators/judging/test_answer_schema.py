"""Every judged evaluator's answer is bound by a strict schema, and what fits the schema is read."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from evaluators.expectations import Expectation
from evaluators.judging.answer_schema import shape, strict_schema
from evaluators.providers.scripted import fitting
from evaluators.resources import Block
from evaluators.trace.argument_correctness import Arguments
from tests.support.evaluating import a_call, a_trace
from tests.support.judging import ALL, answering, by_name, judge, judge_turns, judged


def _objects(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":  # pyright: ignore[reportUnknownMemberType]
            yield schema
        for each in schema.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _objects(each)
    elif isinstance(schema, list):
        for each in schema:  # pyright: ignore[reportUnknownVariableType]
            yield from _objects(each)


async def test_every_schema_is_strict_and_what_fits_it_is_scored() -> None:
    asked = answering()
    trace = a_trace(tool_calls=(a_call(), a_call()))
    expected = Expectation(output="x", outcomes=("a", "b"))
    due = judged(*ALL)

    verdict = await judge(trace, asked, due, expectation=expected)
    session = await judge_turns([trace], asked, due, expectations={trace.trace_id: expected})

    assert {o.state for o in (*verdict.outcomes, *session.outcomes)} == {"scored"}
    for prompt, _ in asked.asked:
        jsonschema.Draft202012Validator.check_schema(prompt.schema)
        jsonschema.validate(fitting(prompt.schema), prompt.schema)
        assert "$ref" not in str(prompt.schema)
        for each in _objects(prompt.schema):
            assert each["additionalProperties"] is False
            assert each["required"] == list(each["properties"])
    assert by_name(verdict).keys() == set(ALL) - {"agentic", "conversation_quality"}


def test_optional_fields_are_required_and_may_be_null() -> None:
    schema = strict_schema(Arguments)

    verdict = schema["properties"]["verdicts"]["items"]
    assert verdict["required"] == ["verdict", "reason"]
    assert {"type": "null"} in verdict["properties"]["reason"]["anyOf"]
    assert verdict["properties"]["verdict"]["enum"] == ["no", "yes"]


def test_a_type_that_no_strict_schema_can_express_is_an_error() -> None:
    class Loose(Block, frozen=True, kw_only=True):
        """Anything goes."""

        fields: dict[str, int]

    with pytest.raises(TypeError):
        strict_schema(Loose)


def test_a_shape_is_short() -> None:
    assert shape(strict_schema(Arguments)) == (
        '{"verdicts": [{"verdict": "no" or "yes", "reason": string or null}, ...]}'
    )
