"""What has changed of an agent in plain words, and what runs away. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collector.api.query import time_shown
from collector.api.store import micros
from collector.records.standing import Drop

HEADLINE = "agent_reliability"
"""The evaluator of which the pages speak first."""
_CHANGES = {"worse": "worse than its own past", "better": "better than ever"}
_WORK = {"worse": "more work than ever", "better": "less work than ever"}


def headline_first(drops: Sequence[Drop]) -> list[Drop]:
    """The reliability, which the others explain, then the farthest from as ever."""
    return sorted(
        drops,
        key=lambda each: (
            each.evaluator != HEADLINE,
            -round(abs(each.mean_rank - 0.5), 2),
            each.evaluator,
        ),
    )


def change(drop: Drop) -> dict[str, Any]:
    """A change as the page tells it: its evaluator, what happened, and whether that is bad.

    Less work than ever is: an agent that gives up early works less.
    """
    is_work = drop.evaluator == "work_baseline"
    words = _WORK if is_work else _CHANGES
    since = time_shown(micros(drop.since))[:16].replace("T", " ")
    rank = f"{drop.mean_rank:.2f}".removeprefix("0")
    what = (
        f"{words[drop.direction]} since {since}: "
        f"mean rank {rank} where .5 is as ever, {drop.sessions} {drop.scope}s"
    )
    return {
        "evaluator": drop.evaluator,
        "direction": "changed" if is_work else drop.direction,
        "rank": rank,
        "what": what,
        "is_bad": is_work or drop.direction == "worse",
    }
