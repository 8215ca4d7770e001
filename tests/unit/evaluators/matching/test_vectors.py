"""Directions say of two vectors what the vectors themselves say: their cosine."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.matching.questions import cosines, packed_direction
from evaluators.matching.text import cosine_distance

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
