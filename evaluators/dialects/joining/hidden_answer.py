"""Whether an answer was given that is not exported, or a mask is in its place: that is not the agent's silence."""

import re
from collections.abc import Sequence

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.decoding.values import as_dict, as_list, is_mask
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.tree import Tree
from evaluators.model import JSON, AgentStep, Status, ToolCall

_ANSWERS = re.compile(r"output|completion|response|answer|result", re.IGNORECASE)
"""In the names of attributes that hold what a span gave."""
_DEPTH = 8  # levels of a message that are looked at for a mask: a part of it is three deep


def masks_answer(tree: Tree, exchanges: Sequence[Exchange]) -> bool:
    last = max(exchanges, key=lambda each: each.start).layers if exchanges else []
    return any(map(_is_masked, (*tree.spine, *last)))


def _is_masked(facts: Facts) -> bool:
    attributes = facts.span.attributes
    if any(_ANSWERS.search(name) and attributes.get(name) is None for name in names_of(attributes)):
        return True
    return facts.output is not None and _holds_mask(facts.output.value)


def _holds_mask(value: JSON, depth: int = 0) -> bool:
    if is_mask(value):
        return True
    if depth > _DEPTH:
        return False
    inner = [*as_list(value), *as_dict(value).values()]
    return any(_holds_mask(each, depth + 1) for each in inner)


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
    if not exchanges or status in ("error", "cancelled") or any(step.output for step in steps):
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
