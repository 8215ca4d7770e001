"""The command behind the tables of second opinions."""

import pytest

from evaluators.formulas.release_verdict import LOOKS
from evaluators.formulas.second_opinion import opinion_looks
from scripts.research.second_opinions import JUDGES, USUAL, looks, seeded


@pytest.mark.parametrize("kind", JUDGES)
def test_looks_at_all_streams_at_once_are_those_of_the_service(kind: str) -> None:
    """The last streams are those of a judge that says the same about all sessions, and of one that finds all lost."""
    rng, judge = seeded(kind), JUDGES[kind](0.69)
    earlier, later = (
        judge(rng, rng.random((12, count)) < failing)
        for count, failing in ((100, USUAL), (LOOKS[-1], 0.5))
    )
    earlier[-2:] = 100
    later[-2], later[-1] = 100, 0

    for found, before, since in zip(
        looks(earlier, later), earlier.tolist(), later.tolist(), strict=True
    ):
        for each, of_service in zip(found, opinion_looks(since, before), strict=True):
            assert each == pytest.approx(of_service, abs=1e-12)
