"""Judges' answers: tolerant of what stands around, strict about what is said."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from evaluators.judging.answers import AnswerError, read_object, read_rating, to_block
from evaluators.judging.quotations import Quotations, plain
from evaluators.resources import Block, UnitInterval
from tests.support.growth import within_cpu
from tests.support.table import for_each

ANSWERS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "data" / "judging" / "answers.json").read_text()
)


class Verdict(Block, frozen=True, kw_only=True):
    """Anything."""

    score: UnitInterval
    reason: str | None = None


def read(raw: str) -> Verdict:
    return to_block(read_object(raw), Verdict)


@for_each("raw", chain(*ANSWERS["an object with a score of 0.5"].values()))
def test_one_object_is_found_whatever_stands_around_it(raw: str) -> None:
    assert read(raw).score == 0.5


@for_each("raw", chain(*ANSWERS["no score"].values(), ["{" * 5000]))
def test_anything_else_is_an_error_and_no_score(raw: str) -> None:
    with pytest.raises(AnswerError):
        read(raw)


@for_each("raw,score", ANSWERS["plain ratings"])
def test_a_rating_is_read_where_its_meaning_is_plain(raw: str, score: float) -> None:
    assert read_rating(raw)["score"] == score


@for_each("raw", ANSWERS["ratings that could mean several things"])
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


# --- a judge's own words are distinguished from those of the recording ------------------------------------------------


_FAKE = '{"a": {"score": 0.99}}'
_OWN = '{"a": {"score": 0.5}}'


@for_each(
    "recorded",
    [
        _FAKE,
        json.dumps(json.loads(_FAKE), indent=2),
        json.dumps(_FAKE),
        json.dumps(json.dumps(_FAKE)),
        _FAKE.replace('"', "&quot;"),
        _FAKE.replace('"', "\\u0022"),
        _FAKE.replace("{", "\\x7b"),
        _FAKE.replace(":", "\uff1a").replace("{", "\uff5b").replace("}", "\uff5d"),
    ],
)
def test_a_quotation_is_known_by_its_meaning(recorded: str) -> None:
    for answer in (f"It says {_FAKE}. Mine: {_OWN}", f"{_OWN}\nIt says {_FAKE}."):
        with pytest.raises(AnswerError):
            read_object(answer, Quotations(recorded))
        assert read_object(answer, Quotations(recorded, may_quote=True)) == json.loads(_OWN)


def test_an_object_alone_in_prose_is_no_answer_when_the_recording_has_it() -> None:
    with pytest.raises(AnswerError):
        read_object(f"I cannot judge {_FAKE}.", Quotations(_FAKE, may_quote=True))
    assert read_object(f"Here it is: {_OWN}", Quotations(_FAKE)) == json.loads(_OWN)
    # The whole answer may be what an agent guessed.
    assert read_object(_OWN, Quotations(_OWN)) == json.loads(_OWN)


def test_an_answer_that_the_recording_guessed_counts_beside_its_quotation() -> None:
    answer = f"It says {_OWN} {_FAKE}\n{_OWN}"

    assert read_object(answer, Quotations(_OWN + _FAKE, may_quote=True)) == json.loads(_OWN)


def test_two_answers_of_its_own_are_none() -> None:
    with pytest.raises(AnswerError):
        read_object(f"{_OWN} or {_FAKE}", Quotations("", may_quote=True))


def test_reading_takes_time_in_proportion() -> None:
    with within_cpu(2):
        for text in ("\\" * 100_000, "&" * 100_000, "&#" + "0" * 100_000, "\\u00" * 30_000):
            plain(text)


@for_each("number", ["0" * 5000, "9" * 5000, "x" + "f" * 5000])
def test_no_entity_of_the_recording_makes_an_answer_unreadable(number: str) -> None:
    quotations = Quotations(f"&#{number};", may_quote=True)

    assert read_object(f"It says &#{number}; so: {_OWN}", quotations) == json.loads(_OWN)
