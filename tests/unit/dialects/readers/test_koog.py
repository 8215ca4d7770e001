"""Koog, whose texts are masks unless it is verbose."""

from typing import Any

from tests.support.conventions import AGENT, CHAT, tool
from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.table import for_each
from tests.support.weather import dump, one_call

MASK = "HIDDEN:non-empty"


@for_each("mask", [MASK, "HIDDEN:system-prompt", "HIDDEN:empty"])
def test_a_mask_is_no_content(mask: str) -> None:
    keys = ("input__messages", "output__messages", "tool__definitions")
    hidden = under("gen_ai.", **dict.fromkeys(keys, mask))
    own = {"koog.event.id": "e", "system_instructions": mask, **hidden}
    trace = trace_of(
        {NAME: "invoke_agent helper", **AGENT, **own},
        {**CHAT, **own, "gen_ai.usage.input_tokens": "5"},
        tool(arguments=mask, result=mask),
    )

    assert (trace.input, trace.output, trace.system, trace.tools_offered) == (None, None, None, ())
    assert "no_content" in trace.gaps
    assert "koog" in trace.dialects
    found = one_call(trace)
    assert (found.arguments, found.result, found.error) == (None, None, None)


def user(text: str) -> dict[str, Any]:
    return {"gen_ai.input.messages": dump([{"role": "user", "content": text}])}


def test_a_mask_inside_a_message_is_no_content_either() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": MASK}}
    asked = dump([{"role": "assistant", "content": MASK, "tool_calls": [call]}])
    trace = trace_of({**CHAT, **user(MASK), "gen_ai.output.messages": asked})

    assert (trace.input, trace.output) == (None, None)
    assert one_call(trace).arguments is None


def test_a_text_that_only_mentions_a_mask_stays() -> None:
    assert trace_of({**CHAT, **user(f"Why does it say {MASK}?")}).input
