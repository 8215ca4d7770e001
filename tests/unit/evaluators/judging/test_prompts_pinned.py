"""What a judge is sent is part of a score: changed words need new versions of the evaluators they change.

When a test here fails: bump `version` of the evaluators named (of all of them for the shared words), then write the
new digests down.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evaluators.digest import canonical
from evaluators.expectations import Expectation
from evaluators.judging.answer_schema import shape, strict_schema
from evaluators.model import Session
from evaluators.providers.scripted import fitting
from evaluators.resources import Block, Conversation
from evaluators.trace.argument_correctness import Arguments
from tests.support.evaluating import OURS, a_call, a_trace
from tests.support.judging import ALL, answering, by_name, judge, judge_turns, judged

TRACE = a_trace(tool_calls=(a_call(),))
CONVERSATION = Conversation(
    session=Session(service="bot", session_id="s", agent="a"), traces=(TRACE,), expected={}
)

SHARED = "dd0ad9227db5d0ff"

DATA = Path(__file__).parents[3] / "data" / "judging"
PINNED: Mapping[str, list[str]] = json.loads((DATA / "prompts.json").read_text())
"""Version and digest of rubrics and schemas, the extraction's included where it is used."""


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


def _judged() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for spec in OURS:
        subject = TRACE if spec.scope == "trace" else CONVERSATION
        kinds = [kind for kind in spec.resources.values() if isinstance(kind, type)]
        blocks: list[type[Block]] = [kind for kind in kinds if issubclass(kind, Block)]
        if blocks:
            asked = [kind.question(subject, spec.options) for kind in blocks]
            prompts = [[each.rubric, each.schema] for each in asked]
            found[spec.name] = [spec.version, _digest(prompts)]
    return found


async def test_the_words_around_rubrics_and_recording() -> None:
    asked = answering()
    expected = Expectation(output="x", outcomes=("y",), emphasis="z")

    await judge(TRACE, asked, judged("task_completion", "relevance"), expectation=expected)
    await judge_turns([TRACE], asked, judged("agentic"), expectations={TRACE.trace_id: expected})

    said = [[prompt.name, prompt.system, prompt.user] for prompt, _ in asked.asked]
    assert _digest(said) == SHARED


def test_a_changed_rubric_has_a_new_version() -> None:
    assert _judged() == PINNED


# --- every answer is bound by a strict schema -------------------------------------------------------------------------


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


def test_optional_fields_are_required_and_may_be_null_and_a_shape_is_short() -> None:
    schema = strict_schema(Arguments)

    assert schema["properties"]["verdicts"]["items"]["required"] == ["verdict", "reason"]
    assert shape(schema) == (
        '{"verdicts": [{"verdict": "no" or "yes", "reason": string or null}, ...]}'
    )


def test_a_type_that_no_strict_schema_can_express_is_an_error() -> None:
    class Loose(Block, frozen=True, kw_only=True):
        """Anything goes."""

        fields: dict[str, int]

    with pytest.raises(TypeError):
        strict_schema(Loose)
