"""Koog, whose texts are masks unless it is verbose."""

import pytest

from tests.support.conventions import CHAT, chat, tool
from tests.support.dialect_spans import NAME, trace_of
from tests.support.weather import one_call


@pytest.mark.parametrize("mask", ["HIDDEN:non-empty", "HIDDEN:system-prompt", "HIDDEN:empty"])
def test_a_mask_is_no_content(mask: str) -> None:
    hidden = {
        "koog.event.id": "e",
        "gen_ai.input.messages": mask,
        "gen_ai.output.messages": mask,
        "gen_ai.tool.definitions": mask,
        "system_instructions": mask,
    }
    call = {"gen_ai.tool.call.arguments": mask, "gen_ai.tool.call.result": mask}
    trace = trace_of(
        {NAME: "invoke_agent helper", **hidden, "gen_ai.operation.name": "invoke_agent"},
        {**CHAT, **hidden, "gen_ai.usage.input_tokens": "5"},
        tool("get_weather", **call),
    )

    assert (trace.input, trace.output, trace.system, trace.tools_offered) == (None, None, None, ())
    assert "no_content" in trace.gaps
    assert "koog" in trace.dialects
    found = one_call(trace)
    assert (found.arguments, found.result, found.error) == (None, None, None)


def test_a_mask_inside_a_message_is_no_content_either() -> None:
    said = '[{"role": "user", "content": "HIDDEN:non-empty"}]'
    asked = (
        '[{"role": "assistant", "content": "HIDDEN:non-empty", "tool_calls":'
        ' [{"id": "c1", "function": {"name": "f", "arguments": "HIDDEN:non-empty"}}]}]'
    )
    given = {"gen_ai.input.messages": said, "gen_ai.output.messages": asked}
    trace = trace_of(chat(2, 1, 2, attributes=given))

    assert (trace.input, trace.output) == (None, None)
    assert one_call(trace).arguments is None


def test_a_text_that_only_mentions_a_mask_stays() -> None:
    said = '[{"role": "user", "content": "Why does it say HIDDEN:non-empty?"}]'
    assert trace_of(chat(2, 1, 2, attributes={"gen_ai.input.messages": said})).input
