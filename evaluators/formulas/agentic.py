"""A conversation's correctness, pass@k and pass^k (Fair Forge Agentic)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from evaluators.formulas.pass_k import pass_at_k, pass_pow_k, posterior
from evaluators.formulas.unit_interval import clamp
from evaluators.matching.tool_match import ToolMatch
from evaluators.model import JSON

Mode = Literal["frequentist", "bayesian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """How pass@k and pass^k are computed; names and defaults are the document's."""

    k: int = 3
    threshold: float = 0.7
    mode: Mode = "frequentist"
    ci_level: float = 0.95
    beta_prior_a: float = 1.0
    beta_prior_b: float = 1.0


def conversation(
    scores: Sequence[float], tools: Sequence[ToolMatch | None], how: Passing
) -> dict[str, JSON]:
    """The document's AgenticMetric without its two ids; an interaction is correct at or above the threshold.

    Args:
        scores: The judge's correctness per interaction, clamped to [0, 1].
        tools: Tool correctness per interaction; None where none was expected or none used. It changes nothing else.
        how: Options.

    Raises:
        ValueError: There is no interaction, or a score is no number: a judge's failure is not a wrong answer.
    """
    if not scores or any(math.isnan(score) for score in scores):
        raise ValueError("a conversation needs interactions, each with a score")
    judged = [clamp(score) for score in scores]
    correct = [index for index, score in enumerate(judged) if score >= how.threshold]
    n, c = len(judged), len(correct)
    return {
        "total_interactions": n,
        "correct_interactions": c,
        "is_fully_correct": c == n,
        "threshold": how.threshold,
        "correctness_scores": judged,
        "correct_indices": correct,
        "tool_correctness_scores": [None if tool is None else asdict(tool) for tool in tools],
        "k": how.k,
        **_passing(n, c, how),
    }


def _passing(n: int, c: int, how: Passing) -> dict[str, float | None]:
    if how.mode == "frequentist":
        return {
            "pass_at_k": pass_at_k(n, c, how.k),
            "pass_at_k_ci_low": None,
            "pass_at_k_ci_high": None,
            "pass_pow_k": pass_pow_k(n, c, how.k),
            "pass_pow_k_ci_low": None,
            "pass_pow_k_ci_high": None,
        }
    known = posterior(
        n, c, how.k, prior_a=how.beta_prior_a, prior_b=how.beta_prior_b, level=how.ci_level
    )
    return {
        "pass_at_k": known.pass_at_k.mean,
        "pass_at_k_ci_low": known.pass_at_k.low,
        "pass_at_k_ci_high": known.pass_at_k.high,
        "pass_pow_k": known.pass_pow_k.mean,
        "pass_pow_k_ci_low": known.pass_pow_k.low,
        "pass_pow_k_ci_high": known.pass_pow_k.high,
    }
