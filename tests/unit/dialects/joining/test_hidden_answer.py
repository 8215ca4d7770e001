"""An answer that is not exported is a gap of the recording; no answer is the agent's."""

from typing import Any

from tests.support.conventions import CHAT, asked, made, says, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

ASKED = {
    **CHAT,
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": asked("Hi?"),
    "gen_ai.usage.output_tokens": 7,
}
EMPTY = {"gen_ai.output.messages": '[{"role":"assistant","parts":[],"finish_reason":"stop"}]'}
TOOL = tool("look_up")
CALLED = TOOL | {"gen_ai.tool.call.arguments": '{"a": 1}'}


def gaps(*spans: dict[str, Any]) -> tuple[str, ...]:
    inner = [
        made(at, 10 * at, each, end=10 * at + 5, status=2 if "error.type" in each else 0)
        for at, each in enumerate(spans, 2)
    ]
    return trace_of(SpanSpec(id=1, name="turn", end=99), *inner).gaps


@for_each(
    "why,spans,hidden",
    [
        ("counted and not there", (ASKED,), True),
        ("after a tool", (ASKED, TOOL, ASKED), True),
        ("an empty message", (ASKED | EMPTY,), False),
        ("it called a tool", (ASKED, TOOL), False),
        ("what it did is there", (ASKED, CALLED, ASKED), False),
        ("nothing was said", (ASKED | {"gen_ai.usage.output_tokens": 0},), False),
        ("the model failed", (ASKED | {"error.type": "timeout"},), False),
    ],
)
def test_an_answer_that_was_counted_and_is_not_there_was_not_exported(
    why: str, spans: tuple[dict[str, Any], ...], hidden: bool
) -> None:
    assert ("no_content" in gaps(*spans)) is hidden, why


@for_each("mask", ["***", "[REDACTED]"])
def test_a_masked_answer_is_a_gap_though_the_rest_is_seen(mask: str) -> None:
    """The whole attribute, or a part of the message; the same with an empty answer is the agent's silence."""
    for answer in (mask, says(mask)):
        assert "no_content" in gaps(ASKED, CALLED, ASKED | {"gen_ai.output.messages": answer})
    assert "no_content" not in gaps(ASKED, CALLED, ASKED | EMPTY)
