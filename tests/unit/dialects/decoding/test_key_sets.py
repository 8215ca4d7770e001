"""What is remembered of a set of keys: answers that never change, and never without end."""

from evaluators.dialects.decoding import key_sets
from evaluators.dialects.decoding.key_sets import (
    Among,
    Prefix,
    either,
    shape_of,
    shape_of_map,
)


class Counted:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, names: object) -> int:
        self.asked += 1
        return self.asked


def test_equal_keys_have_one_shape_and_a_question_is_answered_once() -> None:
    question = Counted()

    answers = [shape_of(frozenset(keys))[question] for keys in (["a", "b"], ["b", "a"], ["a"])]

    assert answers == [1, 1, 2]


def test_keys_are_given_in_the_order_asked_for() -> None:
    assert shape_of(frozenset({"c", "a", "x"}))[Among("c", "b", "a")] == ("c", "a")


def test_a_prefix_is_found_in_any_key() -> None:
    keys = shape_of(frozenset({"llm.tools.7.name"}))

    assert (keys[Prefix("llm.tools.")], keys[Prefix("llm.input.")]) == (True, False)


def test_either_of_several_questions_has_an_answer() -> None:
    question = either(Among("a", "b"), Prefix("llm."))

    assert [shape_of(frozenset({key}))[question] for key in ("b", "llm.x", "c")] == [
        True,
        True,
        False,
    ]


def test_no_more_shapes_are_remembered_than_fit() -> None:
    for number in range(3 * key_sets._SHAPES):
        shape_of(frozenset({f"key.{number}"}))

    assert len(key_sets._by_names) <= key_sets._SHAPES


def test_a_map_of_the_same_name_and_size_has_the_shape_of_its_own_keys() -> None:
    wanted = [frozenset(keys) for keys in ("ab", "ac", "ab", "abc", "")]

    assert [shape_of_map(keys, "chat").names for keys in wanted] == wanted
    assert shape_of_map(frozenset("ab"), "chat") is shape_of_map(frozenset("ba"), "tool")


def test_no_more_maps_are_expected_than_fit() -> None:
    for number in range(3 * key_sets._SHAPES):
        shape_of_map({"a"}, f"step {number}")
    shape_of_map({"a"}, "x" * 10_000)

    assert len(key_sets._expected) <= key_sets._SHAPES
    assert all(len(name) <= key_sets._NAME for name, _ in key_sets._expected)


def test_a_flattened_conversation_is_not_remembered() -> None:
    keys = frozenset(f"llm.input_messages.{number}" for number in range(key_sets._KEYS + 1))

    assert shape_of(keys) is not shape_of(keys)
