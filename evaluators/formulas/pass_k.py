"""pass@k and pass^k: from a rate (Fair Forge), from its Beta posterior, and combinatorially (the papers)."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from evaluators.formulas.distribution import clamp
from evaluators.matching.tool_match import ToolMatch
from evaluators.model import JSON


def rate(n: int, c: int) -> float:
    """Share of correct ones; 0 of none."""
    return c / n if n else 0.0


def pass_at_k(n: int, c: int, k: int) -> float:
    """Fair Forge's probability of at least one success in k: 1 - (1 - c/n)^k; 0 without any success."""
    if c <= 0:
        return 0.0
    return 1.0 if c >= n else 1.0 - (1.0 - c / n) ** k


def pass_pow_k(n: int, c: int, k: int) -> float:
    """Fair Forge's probability of k successes in k: (c/n)^k; 0 without any success."""
    if c <= 0:
        return 0.0
    return 1.0 if c >= n else (c / n) ** k


def combinatorial_pass_at_k(n: int, c: int, k: int) -> float:
    """The papers' unbiased estimate 1 - C(n-c, k) / C(n, k); needs n >= k >= 1."""
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def combinatorial_pass_pow_k(n: int, c: int, k: int) -> float:
    """The papers' unbiased estimate C(c, k) / C(n, k); needs n >= k >= 1."""
    return math.comb(c, k) / math.comb(n, k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A posterior mean and its equal-tailed credible interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    rate: Interval
    pass_at_k: Interval
    pass_pow_k: Interval


_NOTHING = Interval(mean=0.0, low=0.0, high=0.0)


def posterior(
    n: int, c: int, k: int, *, prior_a: float = 1.0, prior_b: float = 1.0, level: float = 0.95
) -> Posterior:
    """The Beta posterior in closed form, where Fair Forge draws samples; all zeros without attempts.

    `k`: attempts that pass@k and pass^k speak of. `prior_a`: of the Beta prior, > 0. `prior_b`: of the Beta prior, > 0.
    """
    if n == 0:
        return Posterior(rate=_NOTHING, pass_at_k=_NOTHING, pass_pow_k=_NOTHING)
    a, b = prior_a + c, prior_b + n - c
    tail = (1.0 - level) / 2
    low, high = beta_quantile(a, b, tail), beta_quantile(a, b, 1.0 - tail)
    return Posterior(
        rate=Interval(mean=a / (a + b), low=low, high=high),
        pass_at_k=Interval(
            mean=1.0 - _moment(b, a, k), low=1.0 - (1.0 - low) ** k, high=1.0 - (1.0 - high) ** k
        ),
        pass_pow_k=Interval(mean=_moment(a, b, k), low=low**k, high=high**k),
    )


def _moment(a: float, b: float, k: int) -> float:
    return math.prod((a + i) / (a + b + i) for i in range(k))


# --- quantiles of Beta(a, b) -----------------------------------------------------------------------------------------

_MOST_TERMS = 10_000  # of the continued fraction, which mostly needs some tens


def beta_quantile(a: float, b: float, p: float) -> float:
    """The x at which Beta(a, b), a and b > 0, has probability p below it: to 1e-11 of scipy's `betaincinv`."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if beta_probability(a, b, middle) < p:
            low = middle
        else:
            high = middle
    return high


def beta_probability(a: float, b: float, x: float) -> float:
    """The probability of Beta(a, b), a and b > 0, below x: the regularised incomplete beta function."""
    if not 0 < x < 1:
        return float(x >= 1)
    # There the fraction of the other tail is the one that converges fast.
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta_tail(b, a, 1.0 - x)
    return _beta_tail(a, b, x)


def _beta_tail(a: float, b: float, x: float) -> float:
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + a * math.log(x) + b * math.log1p(-x)) / a * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz' method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    product = d
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1.0 / (1.0 + term * d), 1.0 + term / c
            product *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return product


# --- a conversation's correctness (Fair Forge Agentic) ---------------------------------------------------------------

Mode = Literal["frequentist", "bayesian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
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

    `scores`: the judge's correctness per interaction, clamped to [0, 1]. `tools`: tool correctness per interaction;
    None where none was expected or none used. It changes nothing else. Raises ValueError: there is no interaction, or a
    score is not a number: a judge's failure is not a wrong answer.
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
    at_k, pow_k = pass_at_k(n, c, how.k), pass_pow_k(n, c, how.k)
    bounds: tuple[float | None, ...] = (None,) * 4
    if how.mode == "bayesian":
        known = posterior(
            n, c, how.k, prior_a=how.beta_prior_a, prior_b=how.beta_prior_b, level=how.ci_level
        )
        at, pow_ = known.pass_at_k, known.pass_pow_k
        at_k, pow_k, bounds = at.mean, pow_.mean, (at.low, at.high, pow_.low, pow_.high)
    return {
        "pass_at_k": at_k,
        "pass_at_k_ci_low": bounds[0],
        "pass_at_k_ci_high": bounds[1],
        "pass_pow_k": pow_k,
        "pass_pow_k_ci_low": bounds[2],
        "pass_pow_k_ci_high": bounds[3],
    }
