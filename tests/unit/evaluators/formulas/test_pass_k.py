"""pass@k and pass^k: the document's, the posterior's, and the papers' published numbers."""

import random

import pytest
from scipy.special import betainc, betaincinv

from evaluators.formulas.pass_k import (
    Passing,
    beta_probability,
    beta_quantile,
    conversation,
    pass_at_k,
    pass_pow_k,
    posterior,
)


def test_the_document_s_example() -> None:
    assert pass_at_k(10, 7, 3) == pytest.approx(0.973)
    assert (pass_at_k(0, 0, 3), pass_pow_k(0, 0, 3)) == (0.0, 0.0)
    assert pass_pow_k(10, 7, 3) == pytest.approx(0.343)


def test_more_attempts_at_the_same_rate_make_the_interval_narrower() -> None:
    few, many = posterior(5, 3, 3).pass_at_k, posterior(100, 60, 3).pass_at_k

    assert many.high - many.low < (few.high - few.low) / 3
    assert few.low < few.mean < few.high


def test_identical_conversations_get_identical_intervals() -> None:
    how = Passing(mode="bayesian", k=3)

    first, second = (conversation([1, 1, 0.2], [None] * 3, how) for _ in range(2))

    assert first == second
    assert first["pass_at_k_ci_low"] < first["pass_at_k"] < first["pass_at_k_ci_high"]


def _beta_cases() -> list[tuple[float, float, float]]:
    """(a, b, p) as attempts and priors make them, and far outside."""
    draw = random.Random(7)
    counts = [(1.0 + draw.randrange(200), 1.0 + draw.randrange(200)) for _ in range(100)]
    scales = [(10 ** draw.uniform(-4, 3), 10 ** draw.uniform(-4, 3)) for _ in range(150)]
    large = [(draw.uniform(0.01, 1200), draw.uniform(0.01, 1200)) for _ in range(100)]
    tails = (0.025, 0.975, 1e-6, 1 - 1e-6)
    return [(a, b, draw.choice((*tails, draw.random()))) for a, b in (*counts, *scales, *large)]


def test_quantiles_of_the_beta_distribution_are_those_of_scipy() -> None:
    for a, b, p in _beta_cases():
        assert beta_quantile(a, b, p) == pytest.approx(float(betaincinv(a, b, p)), abs=1e-11)


def test_probabilities_of_the_beta_distribution_are_those_of_scipy() -> None:
    for a, b, x in _beta_cases():
        assert beta_probability(a, b, x) == pytest.approx(float(betainc(a, b, x)), abs=1e-11)


@pytest.mark.parametrize(("x", "below"), [(-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
def test_outside_its_interval_the_probability_is_0_or_1(x: float, below: float) -> None:
    assert beta_probability(2.0, 3.0, x) == below


def test_a_prior_without_mass_inside_has_its_quantiles_at_the_ends() -> None:
    assert beta_quantile(1e-9, 1.0, 0.5) == pytest.approx(0.0, abs=1e-300)
    assert beta_quantile(1.0, 1e-9, 0.5) == 1.0
