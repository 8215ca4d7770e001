"""Drops are noticed as fast as promised, and no more false alarms are raised than promised (docs/alerting.md).

The simulation runs the service's own code with fixed seeds. `SPANWISE_LABELLED` names a folder of labelled runs, as
`scripts/research/ranked_sessions.py` reads them, whose scores are resampled as well.
"""

import os
from pathlib import Path
from statistics import median

import pytest

from scripts.research.drops import (
    TRAFFIC,
    Kind,
    Traffic,
    delay,
    external_rows,
    false_alarm_rows,
    false_alarms,
    futures,
    noticed,
    steady,
    tables,
)
from scripts.research.ranked_sessions import Run, auroc, runs

DOCS = Path(__file__).parents[3] / "docs" / "alerting.md"
MOST = 0.1
"""Alarms in 30 days of 960 sessions, for each direction."""
PROMISED = TRAFFIC[:4]
"""Steady, with another mix over the day, another at weekends, and twice as much of it."""
DELAYS = {
    "telecom, work_baseline": (147, 45),
    "airline, work_baseline": (494, None),
    "airline, mean of work_baseline and task_agreement": (173, 52),
}
"""Median sessions until 20 % -> 50 %, and -> 80 %, failing is noticed."""


@pytest.mark.heavy
@pytest.mark.parametrize("traffic", PROMISED[:2], ids=lambda each: each.name)
def test_a_month_without_change_raises_no_alarm(traffic: Traffic) -> None:
    found = false_alarms(traffic, runs=1, days=30)

    assert (found.worse, found.better) == ([0], [0])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("traffic", PROMISED, ids=lambda each: each.name)
def test_false_alarms_keep_their_bound(traffic: Traffic) -> None:
    """The first month of an agent counts as any other."""
    found = false_alarms(traffic, runs=20, days=60)

    most = MOST * 20 * 2 * traffic.a_day / 960
    assert sum(found.worse) <= most
    assert sum(found.better) <= most


@pytest.mark.heavy
@pytest.mark.parametrize(
    "a_day", [70, pytest.param(960, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_a_drop_is_noticed_within_the_stated_sessions(a_day: int) -> None:
    for name, (half, most) in DELAYS.items():
        assert delay(name, a_day, 0.5) <= 1.3 * half, name
        if most is not None:
            assert delay(name, a_day, 0.8) <= 1.3 * most, name


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_the_tables_in_the_docs_are_what_the_simulation_prints() -> None:
    """Of the long rows, which take minutes, only the names are compared here."""
    docs = DOCS.read_text()

    for line in tables(short=True).splitlines():
        assert _is_in(line, docs), line
    for each in TRAFFIC:
        assert f"| {each.name} |" in docs


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_long_rows_in_the_docs_are_what_the_simulation_prints() -> None:
    docs = DOCS.read_text()

    assert [line for line in false_alarm_rows(short=False) if line not in docs] == []
    page = DOCS.with_name("external-evaluators.md").read_text()
    assert [line for line in external_rows() if line not in page] == []


def _is_in(line: str, docs: str) -> bool:
    """Whether a line of the docs begins with it: the docs have columns that the short form leaves out."""
    return any(row.startswith(line.rstrip("| ")) for row in docs.splitlines())


# Labelled runs are not part of the project: the test is there where SPANWISE_LABELLED names a folder of them.
if "SPANWISE_LABELLED" in os.environ:

    @pytest.mark.timeout(600)
    def test_drops_of_labelled_runs_are_noticed_as_their_scores_allow() -> None:
        """What is asked follows from how well the score sorts: the shift of the mean rank is 0.3 (AUROC - 0.5)."""
        sets: dict[str, list[Run]] = {}
        for each in runs(Path(os.environ["SPANWISE_LABELLED"])):
            sets.setdefault(each.set, []).append(each)
        for name, some in sets.items():
            scored = [(each.combined, each.success) for each in some if each.scores]
            sorts = auroc(scored)
            if sorts is None or sorts < 0.65 or min(map(len, _parts(scored))) < 20:
                continue
            good, failed = _parts(scored)
            pasts = steady(Kind(good, failed), 70, days=60, count=4)
            shift = 0.3 * (sorts - 0.5)
            # The delay of the best of four sums, each limit over what the shift leaves of its slack, and noise.
            fastest = min(
                h / (shift - k) for k, h in ((0.02, 20.4), (0.04, 11.51), (0.08, 6.18)) if shift > k
            )
            assert median(noticed(futures(pasts, 9), 0.5)) <= 1.5 * fastest, name


def _parts(scored: list[tuple[float, bool]]) -> tuple[list[float], list[float]]:
    """Sorted scores of those that succeeded and of those that failed."""
    good = sorted(score for score, success in scored if success)
    return good, sorted(score for score, success in scored if not success)
