"""Python reprs, read without evaluating them."""

import pytest

from evaluators.dialects.decoding.reprs import looks_like_object, read_fields, read_repr


def test_an_object_is_its_keyword_arguments() -> None:
    text = "ToolCall(tool_name='x', arguments={'n': -1.5, 'ok': True, 'all': [None, (1, 2)]}, _id=\"it's\")"

    assert read_repr(text) == {
        "tool_name": "x",
        "arguments": {"n": -1.5, "ok": True, "all": [None, [1, 2]]},
        "id": "it's",
        "type": "tool_call",
    }


def test_members_are_their_values_and_the_unreadable_a_text() -> None:
    text = "M(role=<Role.USER: 'user'>, f=<function a.<locals>.b at 0x7f>, t=datetime.timezone.utc)"

    assert read_repr(text) == {
        "role": "user",
        "f": "<function a.<locals>.b at 0x7f>",
        "t": "datetime.timezone.utc",
        "type": "m",
    }


def test_an_object_keeps_the_type_that_it_states() -> None:
    assert read_repr("TextBlock(block_type='text', text='a')") == {
        "block_type": "text",
        "text": "a",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello(world)",
        "M(a=1",
        "M(a=1) and more",
        "M(a=b c)",
        "f(a=1)",
        "M(a='\\x')",
        "M(" * 200,
    ],
)
def test_what_is_no_repr_is_none(text: str) -> None:
    assert read_repr(text) is None


def test_the_beginning_of_a_repr_is_seen() -> None:
    assert looks_like_object("StopEvent(result=Age...")
    assert not looks_like_object("Call me (or don't) = fine")


def test_nested_too_deep_is_none() -> None:
    assert read_repr("M(a=" + "[" * 50 + "]" * 50 + ")") is None


def test_fields_of_a_pydantic_model() -> None:
    assert read_fields("id='1' n=2 items=[M(a=1)]") == {
        "id": "1",
        "n": 2,
        "items": [{"a": 1, "type": "m"}],
    }
    assert read_fields("x = 2") == {}
    assert read_fields("a=1 and so on") == {}
