"""One thing is not "1 things": counts in explanations and on the terminal."""

import re

import pytest

from evaluators.counts import amount
from evaluators.matching.repeats import RepeatCounts
from tests.support.command import evaluated
from tests.support.service import ROOT
from tests.support.table import for_each


@for_each("count,said", [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (1200, "1,200 turns")])
def test_one_is_singular(count: int, said: str) -> None:
    assert amount(count, "turn") == said


def test_an_explanation_of_one_call_says_so() -> None:
    counts = RepeatCounts(repeated=0, failed=0, changing=0, uncompared=0)

    assert counts.explanation(1, "trace") == "0 of 1 tool call of the trace repeated an earlier one"


@pytest.mark.process
def test_no_explanation_of_a_recording_has_one_of_many() -> None:
    signals = evaluated(str(ROOT / "tests/data/captures/strands/session.otlp"))
    explanations = [each["explanation"] or "" for each in signals]

    assert [each for each in explanations if "of 1 tool call " in each]
    assert [each for each in explanations if re.search(r"\b1 \w+( \w+)?s\b", each)] == []
