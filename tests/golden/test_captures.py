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
LACKING = {
    ("claude_agent_oi", "models"),
    ("genkit", "user_id"),
    ("logfire_agents", "tools_offered"),
    ("oai_agents_oi_chat", "tools_offered"),
}
"""Of our recordings, what is not read although the bytes hold it: all else is, without an exception."""
STACKS = sorted({path.parent.name for path in FOLDER.glob("*/*.expect.yaml")})
MORE = FOLDER.with_name("captures_more")
"""One recording of each framework that has a page of its own in docs/frameworks and is in no other folder."""
MORE_STACKS = sorted(path.parent.name for path in MORE.glob("*/*.expect.yaml"))


@cache
def claims() -> list[Claim]:
    return [*score(FOLDER), *score(MORE)]


@pytest.mark.parametrize("stack", [*STACKS, *MORE_STACKS])
def test_a_stack_is_read_right(stack: str) -> None:
    mine = [each for each in claims() if each.stack == stack]
    if FOLDER != OURS:
        assert_most_hold(mine, 0.95)
    else:
        assert_most_hold([each for each in mine if (stack, each.field) not in LACKING], 1)


def test_all_stacks_together_are_read_right() -> None:
    assert_most_hold(claims(), 0.99)
