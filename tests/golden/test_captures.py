"""Recordings of real agent libraries: what they carry is what we read.

`SPANWISE_CAPTURES` names another folder of recordings with expectations.
"""

import os
from functools import cache
from pathlib import Path

import pytest

from tests.support.capture_score import Claim, assert_most_hold, score

OURS = Path(__file__).parents[1] / "data" / "captures"
FOLDER = Path(os.environ.get("SPANWISE_CAPTURES") or OURS)
LACKING = ("oai_agents_oi_chat",)
"""Of our recordings, the stacks that lack something: all others are read without an exception."""
STACKS = sorted({path.parent.name for path in FOLDER.glob("*/*.expect.yaml")})
MORE = FOLDER.with_name("captures_more")
"""One recording of each framework that has a page of its own in docs/frameworks and is in no other folder."""
MORE_STACKS = sorted(path.parent.name for path in MORE.glob("*/*.expect.yaml"))


@cache
def claims() -> list[Claim]:
    return [*score(FOLDER), *score(MORE)]


@pytest.mark.parametrize("stack", [*STACKS, *MORE_STACKS])
def test_a_stack_is_read_right(stack: str) -> None:
    share = 1 if FOLDER == OURS and stack not in LACKING else 0.95

    assert_most_hold([each for each in claims() if each.stack == stack], share)


def test_all_stacks_together_are_read_right() -> None:
    assert_most_hold(claims(), 0.99)
