"""How long the fuzzers run: a few dozen inputs each in `make test-all`, FUZZ_SECONDS over all in `make fuzz`."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.support.mutation import seeds

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
EXAMPLES = 60
QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
CORPUS = Path(__file__).parent / "corpus"

RANDOM = st.randoms(use_true_random=False)
SEEDS = st.integers(0, 10_000)

Fuzz = Callable[..., None]


@pytest.fixture
def fuzz(request: pytest.FixtureRequest) -> Fuzz:
    """Runs a check over strategies: the same few examples every time; for long, others after them."""
    targets = sum(
        "fuzz" in each.fixturenames
        for each in request.session.items
        if isinstance(each, pytest.Function)
    )

    def run(check: Callable[..., None], *strategies: SearchStrategy[object]) -> None:
        shrinking = (Phase.explicit, Phase.generate, Phase.shrink)
        common = settings(
            deadline=None,
            database=None,
            phases=shrinking,
            suppress_health_check=QUIET,
            print_blob=True,
        )
        settings(common, max_examples=EXAMPLES, derandomize=True)(given(*strategies)(check))()
        end = time.monotonic() + SECONDS / targets
        while time.monotonic() < end:
            settings(common, max_examples=100)(given(*strategies)(check))()

    return run


def corpus(name: str) -> list[Path]:
    """What was found before, by name."""
    return sorted(each for each in (CORPUS / name).iterdir() if each.suffix != ".md")


def seed(number: int) -> bytes:
    """One of the recorded requests."""
    return seeds()[number % len(seeds())]
