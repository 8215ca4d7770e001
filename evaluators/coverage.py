"""How much of what a session's score reads is there, and what is said of a score of which too little is."""

from collections.abc import Mapping

from evaluators.counts import amount
from evaluators.model import PENDING

LEAST = 0.5
"""Share of the scores that a session's score could have read below which it says nothing."""

_SAID: Mapping[str, str] = {
    PENDING: "the judge has not answered yet",
    "no_content": "the spans carry no content",
    "sampled_out": "the judge is not asked about this session (judge.sample)",
    "budget": "the judge's budget was spent",
    "judge_lag": "the judge did not answer in time",
    "overload": "there was too much to score",
    "too_large": "the recording is too large for the judge",
    "unscored": "they were not scored",
}
"""Why a score is missing, in plain words; any other word is the type of the error that its evaluator ended with."""
_ASKING = frozenset({"provider_error", "parse_error", "rate_limited", "timeout", "judge_died"})
"""Types of errors of asking a model."""


def is_low(coverage: tuple[int, int]) -> bool:
    return coverage[1] < LEAST * coverage[0]


def low_coverage(coverage: tuple[int, int], missing: Mapping[str, int]) -> str:
    """The explanation of a session's score that is not given: how many scores are there, and why others are not."""
    expected, present = coverage
    text = f"only {present} of the {amount(expected, 'score')} that it needs"
    causes = sorted(missing.items(), key=lambda each: (-each[1], each[0]))
    reasons = [f"{_said(why)} ({count})" for why, count in causes]
    return f"{text}: {'; '.join(reasons)}" if reasons else text


def _said(why: str) -> str:
    if why in _ASKING:
        return f"the judge or embedder failed with {why}"
    return _SAID.get(why, f"their evaluator failed with {why}")
