"""Texts: their beginnings and words, the patterns of ECMAScript, and the vectors that stand for them."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.matching.ecmascript import found
from evaluators.matching.json_values import parse_json
from evaluators.matching.questions import cosines, packed_direction
from evaluators.matching.text import LIMIT, ascii_words, clip, cosine_distance, json_schema, words
from tests.support.table import for_each


@for_each("text", ["", "short", "a" * LIMIT, "\u00e4" * (LIMIT // 2), "\U0001f642" * 2048])
def test_a_text_within_the_limit_stays_as_it_is(text: str) -> None:
    assert clip(text) == text


@for_each("character", ["a", "\u00e4", "\u65e5", "\U0001f642", "\ud800"])
@for_each("limit", [10, 11, 12, 13, LIMIT])
def test_a_longer_text_is_cut_between_characters(character: str, limit: int) -> None:
    width = len(character.encode("utf-8", "surrogatepass"))

    assert clip(character * LIMIT, limit) == character * (limit // width)


def test_half_a_surrogate_pair_before_the_cut_is_kept() -> None:
    text = "a\ud800b" * LIMIT

    assert text.startswith(clip(text))
    assert len(clip(text).encode("utf-8", "surrogatepass")) > LIMIT - 3


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_words_of_ascii_are_those_of_any_text(text: str) -> None:
    assert ascii_words(text) == re.findall(r"\w+", text.lower())
    # The letter makes it a text that an expression has to look at.
    assert words(text) == words(text + " \u00e9")


@for_each("text", ["The cat, the CAT_2 and a 7 x", "The cat, the CAT_2 & \u00fc"])
def test_words_are_longer_than_a_character_and_carry_content(text: str) -> None:
    assert words(text) == {"cat", "cat_2"}


# --- text rules of ECMAScript where Python's differ; every expectation here is what Node 20 answered ------------------


NODE: dict[str, list[Any]] = json.loads(
    (Path(__file__).parents[3] / "data" / "ecmascript.json").read_text()
)
MATCH = [(*each, True) for each in NODE["patterns that match (pattern, flags, text)"]]
NO_MATCH = [(*each, False) for each in NODE["patterns that Python's own rules would match"]]


@for_each("pattern,flags,text,matches", [*MATCH, *NO_MATCH])
def test_a_pattern_matches_as_in_ecmascript(
    pattern: str, flags: str, text: str, matches: bool
) -> None:
    assert found(pattern, text, flags) is matches


@for_each("pattern", NODE["invalid patterns"])
def test_an_invalid_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(re.error):
        found(pattern, "a")


@for_each("text", NODE["no strict JSON"])
def test_what_is_not_strict_json_is_not_parsed(text: str) -> None:
    fault, _ = json_schema(text, {}) or ("", "")

    assert fault == "parse"


@pytest.mark.parametrize("text", ["1e400", "9" * 5000])
def test_a_number_beyond_every_double_is_json_but_no_number(text: str) -> None:
    assert parse_json(text) == float("inf")

    assert json_schema(text, {}) is None
    assert json_schema(text, {"type": "number"}) is not None


@for_each(
    "text,schema,fits",
    [
        ('"ab\\n"', {"pattern": "^[a-z]+$"}, False),
        ('"é"', {"pattern": "^\\w$"}, False),
        ("0.7", {"multipleOf": 0.1}, True),
        ("0.75", {"multipleOf": 0.1}, False),
        ('{"x": "\\ud83d"}', {"properties": {"x": {"type": "string"}}}, True),
    ],
)
def test_a_schema_of_the_user_means_what_ecmascript_and_decimals_mean(
    text: str, schema: dict[str, object], fits: bool
) -> None:
    assert (json_schema(text, schema) is None) == fits


# --- directions say of two vectors what the vectors themselves say: their cosine --------------------------------------


NUMBERS = st.lists(
    st.floats(-1e6, 1e6).filter(lambda each: not 0 < abs(each) < 1e-6), min_size=8, max_size=8
)


@given(NUMBERS, NUMBERS)
def test_directions_have_the_cosine_of_their_vectors(left: list[float], right: list[float]) -> None:
    (cosine,) = cosines(packed_direction(left), [packed_direction(right)])

    assert cosine == pytest.approx(1 - cosine_distance(left, right), abs=1e-12)


def test_a_vector_is_as_close_as_can_be_to_itself_however_long_it_is() -> None:
    vector = [math.pi, -math.e, 1e-3, 40.0]
    longer = packed_direction([1000 * each for each in vector])

    assert cosines(packed_direction(vector), [longer, longer]) == pytest.approx([1.0, 1.0])


def test_an_array_is_packed_as_the_list_of_its_numbers() -> None:
    numbers = [0.5, 0.25, -2.0]

    assert packed_direction(numpy.array(numbers, numpy.float32)) == packed_direction(numbers)


def test_vectors_of_two_models_are_not_compared() -> None:
    with pytest.raises(ValueError, match="dimensions"):
        cosines(packed_direction([1.0, 0.0]), [packed_direction([1.0, 0.0, 0.0])])
