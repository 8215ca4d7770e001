"""An answer that is not exported is a gap of the recording; no answer is the agent's."""

from typing import Any

import pytest

from tests.support.dialect_spans import SpanSpec, trace_of

ASKED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi?"}]}]',
    "gen_ai.usage.output_tokens": 7,
}
EMPTY = {"gen_ai.output.messages": '[{"role":"assistant","parts":[],"finish_reason":"stop"}]'}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}


def gaps(*spans: dict[str, Any]) -> tuple[str, ...]:
    root = SpanSpec(id=1, name="turn", end=99)
    made = [
        SpanSpec(
            id=at,
            parent=1,
            start=10 * at,
            end=10 * at + 5,
            attributes=each,
            status=2 if "error.type" in each else 0,
        )
        for at, each in enumerate(spans, 2)
    ]
    return trace_of(root, *made).gaps


@pytest.mark.parametrize(
    ("spans", "hidden"),
    [
        ((ASKED,), True),
        ((ASKED, TOOL, ASKED), True),
        ((ASKED | EMPTY,), False),
        ((ASKED, TOOL), False),
        ((ASKED, TOOL | {"gen_ai.tool.call.arguments": '{"a": 1}'}, ASKED), False),
        ((ASKED | {"gen_ai.usage.output_tokens": 0},), False),
        ((ASKED | {"error.type": "timeout"},), False),
    ],
    ids=[
        "counted and not there",
        "after a tool",
        "an empty message",
        "it called a tool",
        "what it did is there",
        "nothing was said",
        "the model failed",
    ],
)
def test_an_answer_that_was_counted_and_is_not_there_was_not_exported(
    spans: tuple[dict[str, Any], ...], hidden: bool
) -> None:
    assert ("no_content" in gaps(*spans)) is hidden


@pytest.mark.parametrize("mask", ["***", "[REDACTED]"])
@pytest.mark.parametrize("whole", [True, False], ids=["the attribute", "a part of the message"])
def test_a_masked_answer_is_a_gap_though_the_rest_is_seen(mask: str, whole: bool) -> None:
    """The same with an empty answer is the agent's silence."""
    said = mask if whole else EMPTY["gen_ai.output.messages"].replace("[]", _text(mask))
    called = TOOL | {"gen_ai.tool.call.arguments": '{"a": 1}'}

    assert "no_content" in gaps(ASKED, called, ASKED | {"gen_ai.output.messages": said})
    assert "no_content" not in gaps(ASKED, called, ASKED | EMPTY)


def _text(mask: str) -> str:
    return f'[{{"type":"text","content":"{mask}"}}]'
