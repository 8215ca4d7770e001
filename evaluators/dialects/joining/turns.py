"""The turns of one trace: a conversation of a voice agent, a chat under one trace id, the items of a data set.

A dialect's word for it counts first; then the runs of one agent, side by side; then spans of one name at the top of
the trace, each of which begins with what a user said.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.names import stable_name
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.system_prompt import system_of
from evaluators.dialects.joining.tree import WORK, Tree

_OUTERMOST = 4  # agents above a call that may be a turn: those that are farthest from it


class TraceTurn(NamedTuple):
    spans: Sequence[Facts]
    """What is around its calls, in order of start: it may hold the question and the answer."""
    calls: list[Exchange]  # at least one, in order of start


def named_turns(tree: Tree, own: Sequence[Exchange]) -> list[TraceTurn]:
    turns: dict[str, list[Exchange]] = {}
    for each in own:
        turn = next((f.turn for f in tree.ancestors(each.layers[-1]) if f.turn), None)
        if turn is not None:
            turns.setdefault(turn, []).append(each)
    return [TraceTurn((), calls) for calls in turns.values()] if len(turns) > 1 else []


def runs_of_one_agent(tree: Tree, own: Sequence[Exchange]) -> list[TraceTurn]:
    """Where the same agent was run several times, side by side below a span that asks no model: by run."""
    names = [each.agent for each in tree.order if each.kind == "agent" and each.agent]
    if len(names) == len(set(names)):
        return []
    above = [
        each
        for each in tree.ancestors(own[-1].layers[-1])
        if each.kind == "agent" and each.agent and each.turn is None
    ]
    for turn in above[: -_OUTERMOST - 1 : -1]:
        runs: list[Facts] = []
        for each in own:
            run = _run_beside(tree, turn, each)
            if run is None:
                break
            runs.append(run)
        else:
            found = _grouped(runs, own)
            if len(found) > 1:
                last = found.pop(id(turn))
                return [*found.values(), last]
    return []


def _run_beside(tree: Tree, turn: Facts, exchange: Exchange) -> Facts | None:
    """The run of the same agent beside `turn` in which the call was made, perhaps `turn`; None: there is none."""
    parent = tree.parent(turn)
    for each in tree.ancestors(exchange.layers[-1]):
        if each.kind == "agent" and each.agent == turn.agent and tree.parent(each) is parent:
            return each
    return None


def _grouped(spans: Sequence[Facts], calls: Sequence[Exchange]) -> dict[int, TraceTurn]:
    found: dict[int, TraceTurn] = {}
    for span, call in zip(spans, calls, strict=True):
        found.setdefault(id(span), TraceTurn([span], [])).calls.append(call)
    return found


def alike_tops(tree: Tree, own: Sequence[Exchange]) -> list[TraceTurn]:
    """By the spans at the top of the trace, where these have one name, one after the other, and one system prompt.

    A turn goes on where a model is sent what its tools answered: a gateway leaves a span for each request.
    """
    if len(own) < 2:
        return []
    tops = [_top(tree, each) for each in own]
    first = tops[0]
    if any(each.kind in WORK - {"llm"} or _name(each) != _name(first) for each in tops):
        return []
    groups = sorted(_grouped(tops, own).values(), key=_start)
    if any(two.spans[0].span.start_time_unix_nano < _end(one) for one, two in pairwise(groups)):
        return []
    if len({system_of(each.calls[0]) for each in groups}) > 1:
        return []
    turns = [*_by_question(groups)]
    return turns if len(turns) > 1 else []


def _by_question(groups: Sequence[TraceTurn]) -> Iterator[TraceTurn]:
    turn: TraceTurn | None = None
    for group in groups:
        if turn is None or _begins_a_turn(group):
            if turn is not None:
                yield turn
            turn = group
        else:
            turn = TraceTurn([*turn.spans, *group.spans], [*turn.calls, *group.calls])
    if turn is not None:
        yield turn


def _top(tree: Tree, exchange: Exchange) -> Facts:
    top = exchange.layers[-1]
    for each in tree.ancestors(top):
        top = each
    return top


def _name(top: Facts) -> tuple[object, ...]:
    name = top.span.scope if top.kind == "llm" else stable_name(top.span.name)
    return top.kind, stable_name(top.agent), name


def _start(turn: TraceTurn) -> tuple[int, str]:
    span = turn.spans[0].span
    return span.start_time_unix_nano, span.span_id


def _end(turn: TraceTurn) -> int:
    return turn.spans[-1].span.end_time_unix_nano


def _begins_a_turn(group: TraceTurn) -> bool:
    """Whether the last thing that the model was sent is what a user said; where that is not known, its span says it."""
    # Langfuse writes the tools that are offered among the messages, as a tool's without a result.
    spoken = [m for m in group.calls[0].messages_in if m.role != "tool" or m.results]
    if spoken:
        return spoken[-1].role == "user" and bool(spoken[-1].text)
    (top,) = group.spans
    return top.kind != "llm" and top.input is not None and bool(top.input.text)
