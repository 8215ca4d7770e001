"""Model calls that count on: each states the tokens of all calls of one tool loop so far, as in Spring AI 1.x."""

from __future__ import annotations

import msgspec

from evaluators.dialects.content.facts import NO_TOKENS, Facts
from evaluators.dialects.joining.tree import Tree
from evaluators.model import Tokens


def read_own_counts(tree: Tree) -> None:
    """Give each model call of such a loop its own counts: the difference to the one before it under the same parent."""
    for parent in {
        f.span.parent_span_id: tree.parent(f) for f in tree.order if f.counts_on
    }.values():
        if parent is not None:
            _take_apart(tree.children(parent))


def _take_apart(steps: list[Facts]) -> None:
    """`steps` are in order of start. A call goes on from the one before it only after a tool of the loop ran."""
    before: Tokens | None = None
    went_on = False
    for facts in steps:
        if facts.counts_on:
            went_on = True
        elif facts.kind == "llm" and facts.tokens is not NO_TOKENS:
            so_far = facts.tokens
            if before is not None and went_on and _goes_on(before, so_far):
                facts.tokens = _difference(before, so_far)
            before, went_on = so_far, False


def _goes_on(before: Tokens, so_far: Tokens) -> bool:
    return (so_far.input or 0) >= (before.input or 0) and (so_far.output or 0) >= (
        before.output or 0
    )


def _difference(before: Tokens, so_far: Tokens) -> Tokens:
    """A kind of count that one of both lacks stays as it is."""
    own = {
        name: count - earlier
        for name in Tokens.__struct_fields__
        if (count := getattr(so_far, name)) is not None
        and (earlier := getattr(before, name)) is not None
        and count >= earlier
    }
    return msgspec.structs.replace(so_far, **own)
