"""May a release go on: ranks after DeLong, four looks, and the rows of the table that was simulated."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.formulas.distribution import percentile
from evaluators.formulas.fault_watch import EXPLAINS, Counts, evidence_between
from evaluators.formulas.release_verdict import LOOKS, rank_of, release_verdict

QUANTILES: dict[str, dict[str, list[float]]] = json.loads(
    (Path(__file__).parents[3] / "data" / "score_quantiles.json").read_text()
)
scores = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=30)


def test_the_rank_is_a_share_of_pairs_and_its_error_is_delongs() -> None:
    rng = random.Random(1)
    one, other = ([round(rng.random(), 1) for _ in range(count)] for count in (30, 40))
    psi = [[(a > b) + (a == b) / 2 for b in other] for a in one]
    rows, columns = list(map(fmean, psi)), list(map(fmean, zip(*psi, strict=True)))
    width = 2.2414 * (variance(rows) / 30 + variance(columns) / 40) ** 0.5

    rank = rank_of(one, sorted(other))

    assert rank == pytest.approx((fmean(rows), fmean(rows) - width, fmean(rows) + width), rel=1e-4)


@given(scores, st.integers(0, 60))
def test_between_looks_nothing_changes_and_what_is_decided_stays(more: list[float], n: int) -> None:
    rng = random.Random(n)
    baseline = [rng.random() for _ in range(60)]
    candidate = [rng.random() * 0.8 for _ in range(20 + n)]
    last = max(look for look in LOOKS if look <= len(candidate))

    now = release_verdict(candidate, baseline)

    assert replace(now, next_look=None) == replace(
        release_verdict(candidate[:last], baseline), next_look=None
    )
    if now.verdict != "inconclusive":
        assert release_verdict(candidate + more, baseline) == now


@pytest.mark.parametrize(
    ("candidate", "baseline", "left_out", "reason", "next_look"),
    [
        (19, 200, 0, "too_few_candidate", 20),
        (40, 19, 0, "too_few_baseline", 80),
        (40, 200, 41, "low_coverage", 80),
        (0, 200, 1, "low_coverage", 20),
    ],
)
def test_it_says_why_it_does_not_know(
    candidate: int, baseline: int, left_out: int, reason: str, next_look: int
) -> None:
    found = release_verdict([1.0] * candidate, [1.0] * baseline, left_out=left_out)

    assert (found.verdict, found.reason, found.next_look) == ("inconclusive", reason, next_look)


def test_a_release_that_is_as_good_passes_and_one_that_always_fails_does_not() -> None:
    good = [0.9, 1.0] * 100

    bad = release_verdict([0.1] * 20, good)
    assert release_verdict(good[:80], good).verdict == "pass"
    assert (bad.verdict, bad.reason, bad.used, bad.next_look) == ("fail", None, 20, None)
    assert bad.rank == rank_of([0.1] * 20, sorted(good))


# --- simulated -------------------------------------------------------------------------------------------------------


def drawn(rng: random.Random, kind: str, failing: float, count: int) -> list[float]:
    """Scores of sessions of which a share fails."""
    kinds = ("failed" if rng.random() < failing else "good" for _ in range(count))
    return [percentile(QUANTILES[kind][each], rng.random()) for each in kinds]


def verdicts(kind: str, failing: float, runs: int, seed: int = 7) -> dict[str, float]:
    """Shares of verdicts after 160 sessions, against 200 of which a fifth fails."""
    rng = random.Random(seed)
    counted = Counter(
        release_verdict(drawn(rng, kind, failing, 160), drawn(rng, kind, 0.2, 200)).verdict
        for _ in range(runs)
    )
    return {name: counted[name] / runs for name in ("fail", "pass", "inconclusive")}


@pytest.mark.parametrize(("clump", "most"), [(1, 0.002), (2, 0.002), (3, 0.01)])
@pytest.mark.parametrize("failing", [0.05, 0.2])
def test_the_faults_of_a_release_that_changes_nothing_are_chance_in_few(
    failing: float, clump: int, most: float
) -> None:
    """Asked after each of 160 sessions, in 500 runs; failures come in clumps of this mean."""
    rng = random.Random(7)

    def uses(count: int) -> Iterator[bool]:
        fails = rng.random() < failing
        for _ in range(count):
            yield fails
            stays, begins = 1 - 1 / clump, failing / clump / (1 - failing)
            fails = rng.random() < (failing if clump == 1 else stays if fails else begins)

    def is_failed() -> bool:
        before, since = Counts.of([*uses(200)]), [*uses(160)]
        return any(
            evidence_between(Counts.of(since[:number]), before) >= EXPLAINS
            for number in range(1, 161)
            if since[number - 1]
        )

    assert sum(is_failed() for _ in range(500)) / 500 <= most


@pytest.mark.parametrize(
    ("before", "pattern", "most"),
    [(40, [True], 14), (40, [True, True, False, True], 26), (200, [True], 12)],
)
def test_a_release_whose_tool_fails_is_failed_soon(
    before: int, pattern: list[bool], most: int
) -> None:
    """16 of 16 and three of four sessions; the watch itself, which also fails a release, needs nine."""
    sessions = (pattern * most)[:most]

    assert evidence_between(Counts.of(sessions), Counts(before)) >= EXPLAINS


def test_a_release_that_changes_nothing_is_stopped_in_one_of_twenty_where_failures_come_in_clumps() -> (
    None
):
    """The clumped rows of docs/release-verdicts.md that were above 5 % by the candidate's autocorrelation alone."""
    rng, stopped = random.Random(3), 0

    def scores_of(count: int, scores: dict[str, list[float]]) -> Iterator[float]:
        failing = [False] * 10
        for _ in range(count):
            failing = [rng.random() < (0.5 if each else 0.026) for each in failing]
            yield rng.choice(scores["failed" if any(failing) else "good"])

    for scores in QUANTILES.values():
        for _ in range(150):
            sessions = [*scores_of(360, scores)]
            stopped += release_verdict(sessions[200:], sessions[:200]).verdict == "fail"

    assert stopped / 600 <= 0.05


@pytest.mark.heavy
@pytest.mark.parametrize("kind", QUANTILES)
def test_a_release_that_changes_nothing_is_stopped_in_one_of_twenty_at_most(kind: str) -> None:
    """1,000 runs: three standard errors are 2 %."""
    found = verdicts(kind, 0.2, 1000)

    assert found["fail"] <= 0.05 + 0.02
    assert found["pass"] >= 0.8


@pytest.mark.parametrize(("failing", "least"), [(0.5, 0.2), (0.8, 0.8)])
@pytest.mark.parametrize("kind", QUANTILES)
def test_a_release_that_fails_much_more_often_is_stopped(
    kind: str, failing: float, least: float
) -> None:
    found = verdicts(kind, failing, 100)

    assert found["fail"] >= least
    assert found["pass"] <= 0.35


def test_sessions_that_come_later_are_after_those_that_came_first() -> None:
    """The order of a candidate's sessions decides; that of the baseline's does not."""
    baseline = [0.5] * 30
    worse_first = [0.0] * 20 + [1.0] * 20

    assert release_verdict(worse_first, baseline).verdict == "fail"
    assert release_verdict(worse_first[::-1], baseline).verdict == "pass"
