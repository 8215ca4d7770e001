"""Recordings of real agent libraries: what they carry is what we read.

`SPANWISE_CAPTURES` names another folder of recordings with expectations.
"""

import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.support.capture_score import Claim, score

FOLDER = Path(
    os.environ.get("SPANWISE_CAPTURES") or Path(__file__).parents[1] / "data" / "captures"
)
STACKS = sorted({path.parent.name for path in FOLDER.glob("*/*.expect.yaml")})


@cache
def claims() -> dict[str, list[Claim]]:
    by_stack: dict[str, list[Claim]] = defaultdict(list)
    for claim in score(FOLDER):
        by_stack[claim.stack].append(claim)
    return by_stack


def share(found: list[Claim]) -> float:
    return sum(claim.held for claim in found) / len(found)


def missed(found: list[Claim]) -> str:
    return "\n".join(f"{c.field} {c.where} {c.detail}" for c in found if not c.held)


def test_there_are_recordings() -> None:
    assert STACKS, f"no recordings in {FOLDER}"


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_is_read_right(stack: str) -> None:
    found = claims()[stack]

    assert share(found) >= 0.95, missed(found)


def test_all_stacks_together_are_read_right() -> None:
    found = [claim for stack in claims().values() for claim in stack]

    assert share(found) >= 0.99, missed(found)
