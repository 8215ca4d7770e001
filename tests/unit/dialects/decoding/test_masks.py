"""A mask in place of content is no content; a text that speaks of one is."""

import pytest

from evaluators.dialects.content.tools import read_definitions
from evaluators.dialects.decoding.values import is_hidden
from tests.support.conventions import AGENT, CHAT, asked, call, said, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

MASKS = [
    "***",
    "*" * 32,
    "__REDACTED__",
    "redacted-by-litellm",
    "HIDDEN:non-empty",
    "[REDACTED]",
    "<REDACTED>",
    "<redacted>",
    "[redacted by policy]",
    "<REDACTED:EMAIL>",
    "[REDACTED_PII]",
    "[Filtered]",
    "<masked>",
    "***REDACTED***",
    "[[ hidden ]]",
    "REDACTED",
]


@for_each("text", MASKS)
def test_a_mask_is_known(text: str) -> None:
    assert is_hidden(text)


@for_each(
    "text",
    [
        "",
        "**",
        "* one\n* two",
        "Redacted it, as you asked.",
        "Rome",
        "[removed]",
        "[redacted] and the rest of it",
        "<redacted>name</redacted>",
        "[" + "redacted " * 20 + "]",
        "**Hidden valley**",
        "Masked ball",
    ],
)
def test_a_text_is_not_one(text: str) -> None:
    assert not is_hidden(text)


@pytest.mark.parametrize("mask", ["***", "[redacted by policy]"])
def test_a_masked_agent_has_gaps_and_no_words(mask: str) -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=99),
        SpanSpec(
            id=2,
            parent=1,
            attributes={
                **CHAT,
                "gen_ai.input.messages": asked(mask),
                "gen_ai.output.messages": said("", call("look_up", "c1")),
            },
            start=1,
            end=2,
        ),
        SpanSpec(
            id=3,
            parent=1,
            attributes=tool("look_up", **{"gen_ai.tool.call.arguments": '{"a": 1}'}),
            start=3,
            end=4,
        ),
        SpanSpec(
            id=4,
            parent=1,
            attributes={**CHAT, "gen_ai.output.messages": said(mask)},
            start=5,
            end=6,
        ),
    )

    assert (trace.input, trace.output) == (None, None)
    assert "no_content" in trace.gaps


def test_a_schema_whose_names_are_masked_asks_for_nothing() -> None:
    (masked,) = read_definitions(
        [{"name": "look_up", "parameters": {"properties": {"a": {}}, "required": ["***"]}}]
    )
    (whole,) = read_definitions(
        [{"name": "look_up", "parameters": {"properties": {"a": {}}, "required": ["a"]}}]
    )

    assert masked.parameters is None
    assert whole.parameters is not None
