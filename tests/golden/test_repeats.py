"""Every library's loop is one story: the same numbers and words from every evaluator that tells of repeats.

`SPANWISE_CAPTURES` names another folder of recordings with expectations.
"""

import json
import re
from collections import Counter, defaultdict
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml

from collector.config.tree import Config
from tests.golden.test_captures import FOLDER
from tests.support.recorded_signals import signals_of

LOOPS = sorted(FOLDER.glob("*/loop.otlp"))
REPEATED = re.compile(r"(\d+) (?:of \d+ tool calls? (?:of the \w+ )?)?repeated an earlier one")
OF_TRACES = ("step_efficiency", "tool_correctness", "confidence")


class Turn(NamedTuple):
    """What the tools of one turn logged, as far as the recording carries it."""

    calls: int
    repeats: int


class Loop(NamedTuple):
    """A recording of a loop."""

    turns: dict[str, Turn]
    """By trace id."""
    has_session: bool
    signals: dict[str, list[dict[str, Any]]]
    """Final ones, by evaluator."""


@cache
def loop(stack: str) -> Loop:
    path = FOLDER / stack / "loop.otlp"
    expected = yaml.safe_load(path.with_suffix(".expect.yaml").read_text())
    signals: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for signal in signals_of(Config(workers=0), path):
        signals[signal["evaluator"]].append(signal)
    turns = {turn["main_trace_id"]: _turn(turn) for turn in expected["turn_list"]}
    return Loop(turns, expected["session_exported"], signals)


def _turn(expected: dict[str, Any]) -> Turn:
    # Where no content was exported, the order's number in the session's id looks as if arguments were.
    carried = [
        call
        for call in expected["tool_calls_executed"]
        if call.get("exported") and expected["input_exported"]
    ]
    # In these recordings no result changes.
    same = Counter(json.dumps([call["name"], call["args"], call["result"]]) for call in carried)
    return Turn(len(carried), same.total() - len(same))


STACKS = [path.parent.name for path in LOOPS]


@pytest.mark.parametrize("stack", STACKS)
def test_the_evaluators_of_a_trace_tell_the_same(stack: str) -> None:
    """Of a turn whose calls were not exported there is no score."""
    found = loop(stack)
    for evaluator in OF_TRACES:
        for signal in found.signals[evaluator]:
            turn = found.turns.get(signal["trace_id"], Turn(0, 0))
            if turn.calls:
                counted = REPEATED.search(signal["explanation"])
                assert counted, signal
                assert int(counted[1]) == turn.repeats
                if evaluator != "confidence":
                    score = 1 - turn.repeats / turn.calls
                    assert signal["score"] == pytest.approx(score, abs=1e-4)
            elif evaluator == "step_efficiency" and signal["trace_id"] in found.turns:
                assert signal["score"] is None


@pytest.mark.parametrize("stack", STACKS)
def test_the_session_counts_over_all_of_its_turns(stack: str) -> None:
    found = loop(stack)
    turns = found.turns.values()
    calls, within = sum(turn.calls for turn in turns), sum(turn.repeats for turn in turns)
    counted = [REPEATED.search(each["explanation"]) for each in found.signals["repeated_calls"]]
    scores = [each["score"] for each in found.signals["repeated_calls"]]
    if not calls:
        assert scores == [None]
    elif found.has_session:
        # Each turn made the same call, so that every one but the first repeats it.
        assert [int(each[1]) for each in counted if each] == [calls - 1]
        assert scores == [float(calls - 1 < 10)]
    else:
        assert sum(int(each[1]) for each in counted if each) == within
