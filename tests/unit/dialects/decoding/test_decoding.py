"""Reprs, masks and sets of keys: what is read of a single value."""

from typing import Any

from evaluators.dialects.content.tools import read_definitions
from evaluators.dialects.decoding import key_sets
from evaluators.dialects.decoding.key_sets import (
    Among,
    Prefix,
    either,
    shape_of,
    shape_of_map,
)
from evaluators.dialects.decoding.reprs import looks_like_object, read_fields, read_repr
from evaluators.dialects.decoding.values import is_hidden
from evaluators.model import JSON
from tests.support.conventions import CHAT, ran
from tests.support.dialect_spans import trace_of, under
from tests.support.openinference import flat, of
from tests.support.table import for_each
from tests.support.weather import one_call

# --- Python reprs, read without evaluating them ----------------------------------------------------------------------


@for_each(
    "text,value",
    [
        (
            "ToolCall(tool_name='x', arguments={'n': -1.5, 'ok': True, 'all': [None, (1, 2)]}, _id=\"it's\")",
            {
                "tool_name": "x",
                "arguments": {"n": -1.5, "ok": True, "all": [None, [1, 2]]},
                "id": "it's",
                "type": "tool_call",
            },
        ),
        (
            "M(role=<Role.USER: 'user'>, f=<function a.<locals>.b at 0x7f>, t=datetime.timezone.utc)",
            {
                "role": "user",
                "f": "<function a.<locals>.b at 0x7f>",
                "t": "datetime.timezone.utc",
                "type": "m",
            },
        ),
        ("TextBlock(block_type='text', text='a')", {"block_type": "text", "text": "a"}),
        *((text, None) for text in ("", "Hello(world)", "M(a=1", "M(a=1) and more", "M(a=b c)")),
        *((text, None) for text in ("f(a=1)", "M(a='\\x')", "M(" * 200)),
        ("M(a=" + "[" * 50 + "]" * 50 + ")", None),  # nested too deep
    ],
)
def test_an_object_is_its_keyword_arguments_and_what_is_no_repr_none(
    text: str, value: JSON
) -> None:
    """Members are their values, the unreadable a text; an object keeps the type that it states."""
    assert read_repr(text) == value


def test_the_beginning_of_a_repr_is_seen() -> None:
    assert looks_like_object("StopEvent(result=Age...")
    assert not looks_like_object("Call me (or don't) = fine")


def test_fields_of_a_pydantic_model() -> None:
    assert read_fields("id='1' n=2 items=[M(a=1)]") == {
        "id": "1",
        "n": 2,
        "items": [{"a": 1, "type": "m"}],
    }
    assert read_fields("x = 2") == {}
    assert read_fields("a=1 and so on") == {}


# --- a mask in place of content is no content; a text that speaks of one is ------------------------------------------


MASKS = [
    *("***", "*" * 32, "__REDACTED__", "redacted-by-litellm", "HIDDEN:non-empty", "[REDACTED]"),
    *("<REDACTED>", "<redacted>", "[redacted by policy]", "<REDACTED:EMAIL>", "[REDACTED_PII]"),
    *("[Filtered]", "<masked>", "***REDACTED***", "[[ hidden ]]", "REDACTED"),
]
TEXTS = [
    *("", "**", "* one\n* two", "Redacted it, as you asked.", "Rome", "[removed]"),
    *("[redacted] and the rest of it", "<redacted>name</redacted>", "**Hidden valley**"),
    *("[" + "redacted " * 20 + "]", "Masked ball"),
]


@for_each("text,hidden", [*((each, True) for each in MASKS), *((each, False) for each in TEXTS)])
def test_a_mask_is_known(text: str, hidden: bool) -> None:
    assert is_hidden(text) is hidden


KOOG = dict.fromkeys(("input.messages", "output.messages", "tool.definitions"), "HIDDEN:non-empty")
OPENINFERENCE = {f"{side}.value": "__REDACTED__" for side in ("input", "output")}
BY_LITELLM = "redacted-by-litellm"
LITELLM = {
    "messages": [{"role": "user", "content": BY_LITELLM}],
    "choices": [{"index": 0, "message": {"role": "assistant", "content": BY_LITELLM}}],
}
HIDDEN: dict[str, dict[str, Any]] = {
    "ai.koog": {**CHAT, "koog.event.id": "e", **under("gen_ai.", **KOOG)},
    "openinference.instrumentation.langchain": of("LLM")
    | flat("input", {"role": "user", "content": "__REDACTED__"})
    | OPENINFERENCE,
    "litellm": {
        "gen_ai.request.model": "gpt-4o",
        **under("gen_ai.prompt.0.", role="user", content=BY_LITELLM),
        **under("llm.openai.", **{key: repr(value) for key, value in LITELLM.items()}),
    },
}


@for_each("scope", HIDDEN)
def test_what_a_library_hides_is_no_content(scope: str) -> None:
    trace = trace_of(HIDDEN[scope], scope=scope)

    assert (trace.input, trace.output, trace.tools_offered) == (None, None, ())
    assert "no_content" in trace.gaps


def test_arguments_and_results_that_are_hidden_are_none() -> None:
    hidden = ran(1, 0, "f", arguments="HIDDEN:empty", result="HIDDEN:empty")

    found = one_call(trace_of(hidden))
    assert (found.arguments, found.result, found.error) == (None, None, None)


def test_a_schema_whose_names_are_masked_asks_for_nothing() -> None:
    for name, is_known in (("***", False), ("a", True)):
        schema: JSON = {"properties": {"a": {}}, "required": [name]}
        (tool,) = read_definitions([{"name": "look_up", "parameters": schema}])
        assert (tool.parameters is not None) is is_known


# --- sets of keys - answers that never change, and never without end -------------------------------------------------


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


def test_either_of_several_questions_has_an_answer() -> None:
    question = either(Among("a", "b"), Prefix("llm."))

    assert shape_of(frozenset({"b"}))[question]
    assert shape_of(frozenset({"llm.x"}))[question]
    assert not shape_of(frozenset({"c"}))[question]


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
