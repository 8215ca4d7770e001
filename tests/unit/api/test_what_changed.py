"""What changed: the evaluators that moved farthest come first, and chance is not taken for a change."""

import random

from hypothesis import given
from hypothesis import strategies as st

from collector.records.moved import LEAST, EvaluatorScores, mean_rank, moved


def sessions(**scores: list[float]) -> list[dict[str, EvaluatorScores]]:
    """The n-th session has the n-th score of each evaluator; below .5 it fails."""
    count = max(len(each) for each in scores.values())
    return [
        {
            name: EvaluatorScores(own[at], 1, 1, own[at] < 0.5)
            for name, own in scores.items()
            if at < len(own)
        }
        for at in range(count)
    ]


def test_the_farthest_move_comes_first_and_what_chance_explains_last() -> None:
    draw = random.Random(7)
    before = sessions(
        coherence=[draw.uniform(0.6, 0.9) for _ in range(80)],
        tools=[draw.uniform(0.8, 1.0) for _ in range(80)],
        steps=[draw.uniform(0.6, 0.9) for _ in range(80)],
    )
    since = sessions(
        coherence=[draw.uniform(0.6, 0.9) for _ in range(40)],
        tools=[draw.uniform(0.0, 0.3) for _ in range(40)],
        steps=[draw.uniform(0.7, 1.0) for _ in range(40)],
    )

    first, second, third = moved(before, since)

    assert (first.evaluator, first.rank, first.is_clear) == ("tools", 0.0, True)
    assert (second.evaluator, second.is_clear) == ("steps", True)
    assert second.shift > 0
    assert (third.evaluator, third.is_clear) == ("coherence", False)
    assert first.before is not None
    assert first.since is not None
    assert (first.before.failing, first.since.failing) == (0.0, 1.0)


def test_too_few_on_a_side_are_not_compared() -> None:
    (only,) = moved(sessions(tools=[0.9] * 50), sessions(tools=[0.1] * (LEAST - 1)))

    assert (only.rank, only.is_clear, only.shift) == (None, False, 0.0)


def test_an_evaluator_of_one_side_alone_is_shown_without_a_move() -> None:
    found = {
        each.evaluator: each for each in moved(sessions(old=[1.0] * 9), sessions(new=[1.0] * 9))
    }

    assert found["old"].since is None
    assert found["new"].before is None
    assert {each.rank for each in found.values()} == {None}


def test_scores_that_never_differ_rank_in_the_middle() -> None:
    (same,) = moved(sessions(loops=[1.0] * 30), sessions(loops=[1.0] * 30))

    assert (same.rank, same.is_clear) == (0.5, False)


def test_chance_alone_rarely_looks_like_a_change() -> None:
    draw = random.Random(3)
    clear = 0
    for _ in range(400):
        before, since = ([draw.random() for _ in range(40)] for _ in range(2))
        (found,) = moved(sessions(any=before), sessions(any=since))
        clear += found.is_clear

    assert clear <= 5


@given(
    before=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    since=st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_the_mean_rank_is_the_share_of_pairs_that_went_up(
    before: list[float], since: list[float]
) -> None:
    pairs = [(new > old) + (new == old) / 2 for new in since for old in before]

    assert abs(mean_rank(before, since) - sum(pairs) / len(pairs)) < 1e-9
