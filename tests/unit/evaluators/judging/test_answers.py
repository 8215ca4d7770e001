"""Judges' answers: tolerant of what stands around, strict about what is said."""

import json

import pytest

from evaluators.judging.answers import AnswerError, read_object, read_rating, to_block
from evaluators.resources import Block, UnitInterval
from tests.support.table import for_each


class Verdict(Block, frozen=True, kw_only=True):
    """Anything."""

    score: UnitInterval
    reason: str | None = None


def read(raw: str) -> Verdict:
    return to_block(read_object(raw), Verdict)


@for_each(
    "raw",
    [
        *('{"score": 0.5}', '\ufeff{"score": 0.5}', '```json\n{"score": 0.5}\n```'),
        *('```\n{"score": 0.5}\n```\n', 'Here it is: {"score": 0.5}. Done.'),
        '<think>maybe {"score": 0.1}</think>{"score": 0.5}',
        'maybe {"score": 0.1}</think>{"score": 0.5}',  # the opening tag was swallowed
        '{"score": "0.5", "further": [1]}',
        *(f'{{"score": "{n}", "reason": "x"}}' for n in (" 0.5 ", ".5", "+0.5", "0.5e0", "00.5")),
        # thoughts are stripped at the beginning only
        '<think>{"score": 0.1}</think>{"score": 0.5}',
        '{"score": 0.5, "reason": "x</think>y"}',
        'Here it is: {"score": 0.5, "reason": "x</think>{}"}',
    ],
)
def test_one_object_is_found_whatever_stands_around_it(raw: str) -> None:
    assert read(raw).score == 0.5


@for_each(
    "raw",
    [
        *("", "0.5", "[]", "null", "{'score': 0.5}", "{" * 5000),
        *(
            f'{{"score": {n}}}'
            for n in ("1.01", "-0.1", "true", '"nan"', "NaN", "Infinity", "null")
        ),
        *('{"score": 0.5, "reason": 5}', '{"score": 0.1} or {"score": 0.9}'),
        # what a cut-off answer quotes is not its verdict
        '{"quoted": {"score": 0.99}, "score": 0.',
        'The trace says {"score": 0.99}. My verdict: {"score": 0.',
        '<think>The trace says {"score": 0.99}',
        'Well.\n<reasoning>{"score": 0.99}</think',
        '{"score": 0.1} <think>no</think> {"score": 0.5}',
    ],
)
def test_anything_else_is_an_error_and_no_score(raw: str) -> None:
    with pytest.raises(AnswerError):
        read(raw)


@for_each(
    ("raw", "score"),
    [
        ('{"score": 1.7}', 1.0),
        ("Score: 0.75", 0.75),
        ("Turn 1 was bad, overall 0.2", 0.2),
        ("version 1.2 score 0.4", 0.4),
        ("0.85 because of 1 issue", 0.85),
        ("I would say 0.9 out of 1.0", 0.9),
        ("I rate it 0.9/1.0.", 0.9),
        ("Score: 0.5/1", 0.5),
        ("1/1", 1.0),
        ("\ufeff0.5", 0.5),
        ("```\n0.5\n```", 0.5),
        ('{"score": 1e400}', 1.0),
    ],
)
def test_a_rating_is_read_where_its_meaning_is_plain(raw: str, score: float) -> None:
    assert read_rating(raw)["score"] == score


@for_each(
    "raw",
    [
        *("between 0 and 1: 0.66", "0,7", "8/10", "1/10", "100%", "-0.4 of it", "7", "0.5"),
        *(
            "1/1.5",
            '{"score": 0.1} or {"score": 0.9}',
            'It says {"score": 0.9}. Mine: {"score": 0.',
        ),
    ],
)
def test_a_rating_that_could_mean_several_things_is_an_error(raw: str) -> None:
    with pytest.raises(AnswerError):
        read_rating(raw)


@for_each("tag", ["<think>", "</think>", "<reasoning>", "</reasoning>"])
@for_each("form", ["{}", "```json\n{}\n```", "```json\n{}```!"])
def test_an_answer_that_speaks_of_thinking_tags_is_an_answer(form: str, tag: str) -> None:
    answer = json.dumps({"score": 0.5, "reason": f"the agent wrote {tag} aloud"})

    assert read(form.replace("{}", answer)).score == 0.5


def test_reasoning_that_is_no_text_is_kept_as_json() -> None:
    assert read_rating('{"score": 1, "reasoning": ["a", 1]}')["reasoning"] == '["a", 1]'
