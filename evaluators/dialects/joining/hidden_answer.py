"""Whether only the question was exported: an answer that was given and is not there is not the agent's silence."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.dialects.joining.model_calls import Exchange
from evaluators.model import AgentStep, Status, ToolCall


def hides_answer(
    exchanges: Sequence[Exchange],
    tool_calls: Sequence[ToolCall],
    steps: Sequence[AgentStep],
    status: Status,
) -> bool:
    """Whether the last model call ended well, counted output tokens and called no tool, and nothing said is exported.

    Of an instrumentation that exports what models say there is a message of each call, though it may be empty. Where
    arguments or results of tools are there, what the agent did is seen although its answer is not, unless answers come
    apart from everything else (`Facts.answers_apart`).
    """
    if not exchanges or status == "error" or any(step.output for step in steps):
        return False
    last = max(exchanges, key=lambda each: each.start)
    if last.error is not None or not last.tokens.output:
        return False
    if any(call.start_time_unix_nano >= last.start for call in tool_calls):
        return False
    apart = all(facts.answers_apart for each in exchanges for facts in each.layers)
    if not apart and any(
        call.arguments is not None or call.result is not None for call in tool_calls
    ):
        return False
    return not any(each.messages_out or (apart and each.text) for each in exchanges)
