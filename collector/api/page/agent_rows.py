"""What has changed of an agent in plain words, and what runs away. Pure."""

from collections.abc import Sequence
from typing import Any

from collector.api.page.views import duration
from collector.api.viewer_zone import since
from collector.records.standing import FAULT_WORDS, Drop, Fault

HEADLINE = "agent_reliability"  # the evaluator of which the pages speak first
WORK = "work_baseline"  # the evaluator that ranks how much a session took: it says nothing of the quality
_CHANGES = {"worse": "worse than its own past", "better": "better than its own past"}
_WORK = {"worse": "more work than in its own past", "better": "less work than in its own past"}


def headline_first(drops: Sequence[Drop]) -> list[Drop]:
    return sorted(
        drops,
        key=lambda each: (
            each.evaluator != HEADLINE,
            -round(abs(each.mean_rank - 0.5), 2),
            each.evaluator,
        ),
    )


def fault_row(fault: Fault, now: float) -> dict[str, Any]:
    """A fault as the page tells it: what fails, in how many sessions since when and before, and since when."""
    used = " that used it" if fault.tool else ""
    error = f" ({fault.error})" if fault.error else ""
    return {
        "words": fault.words,
        "tool": fault.tool,
        "numbers": f"{fault.failures} of the last {fault.uses} sessions{used} since {since(fault.since)}, "
        f"{fault.failures_before} of {fault.uses_before} before{error}",
        "for": duration(max(0.0, now - fault.since)),
        "is_bad": fault.pages,
        "sessions": fault.worst,
    }


def explanation(drop: Drop) -> str:
    if drop.cause is None and drop.looked_at is not None:
        return drop.looked_at.words
    if drop.cause is None:
        return "cause unknown: no tool, model call or loop fails more than before"
    fault, tool = drop.cause
    return f"explained by this: {FAULT_WORDS[fault].format(tool=tool)}"


def change(drop: Drop) -> dict[str, Any]:
    """A change as the page tells it: its evaluator, what happened, and whether that is bad.

    Less work is bad too: an agent that gives up early works less.
    """
    is_work = drop.evaluator == WORK
    words = _WORK if is_work else _CHANGES
    rank = f"{drop.mean_rank:.2f}".removeprefix("0")
    what = (
        f"{words[drop.direction]} since {since(drop.since)}: "
        f"mean rank {rank} where .5 means no change, {drop.sessions} {drop.scope}s"
    )
    if drop.direction == "worse":
        what = f"{what}; {explanation(drop)}"
    return {
        "evaluator": drop.evaluator,
        "direction": "changed" if is_work else drop.direction,
        "rank": rank,
        "what": what,
        "is_bad": is_work or drop.direction == "worse",
    }
