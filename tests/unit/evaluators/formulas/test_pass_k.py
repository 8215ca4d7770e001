"""The Beta distribution behind the posterior of pass@k and pass^k; the golden vectors have the formulas."""

import random

import pytest
from scipy.special import betainc, betaincinv

from evaluators.formulas.pass_k import beta_probability, beta_quantile
from tests.support.table import for_each


def _beta_cases() -> list[tuple[float, float, float]]:
    """(a, b, p) as attempts and priors make them, and far outside."""
    draw = random.Random(7)
    counts = [(1.0 + draw.randrange(200), 1.0 + draw.randrange(200)) for _ in range(100)]
    scales = [(10 ** draw.uniform(-4, 3), 10 ** draw.uniform(-4, 3)) for _ in range(150)]
    large = [(draw.uniform(0.01, 1200), draw.uniform(0.01, 1200)) for _ in range(100)]
    tails = (0.025, 0.975, 1e-6, 1 - 1e-6)
    return [(a, b, draw.choice((*tails, draw.random()))) for a, b in (*counts, *scales, *large)]


def test_quantiles_and_probabilities_of_the_beta_distribution_are_those_of_scipy() -> None:
    for a, b, p in _beta_cases():
        assert beta_quantile(a, b, p) == pytest.approx(float(betaincinv(a, b, p)), abs=1e-11)
        assert beta_probability(a, b, p) == pytest.approx(float(betainc(a, b, p)), abs=1e-11)


@for_each("x,below", [(-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
def test_outside_its_interval_the_probability_is_0_or_1(x: float, below: float) -> None:
    assert beta_probability(2.0, 3.0, x) == below


def test_a_prior_without_mass_inside_has_its_quantiles_at_the_ends() -> None:
    assert beta_quantile(1e-9, 1.0, 0.5) == pytest.approx(0.0, abs=1e-300)
    assert beta_quantile(1.0, 1e-9, 0.5) == 1.0
