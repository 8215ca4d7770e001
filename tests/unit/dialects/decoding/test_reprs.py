"""Python reprs, read without evaluating them."""

from evaluators.dialects.decoding.reprs import looks_like_object, read_fields, read_repr
from evaluators.model import JSON
from tests.support.table import for_each


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
