"""Faults are noticed as fast as promised, and no more false alarms are raised than promised (docs/alerting.md).

The simulation runs the service's own watches with fixed seeds. `SPANWISE_LABELLED` names a folder of recordings whose
sessions are drawn again and again.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from evaluators.formulas import fault_watch
from evaluators.formulas.fault_watch import FaultWatch
from scripts.research import many_watches
from scripts.research.faults import (
    PLANTS,
    SIMULATED,
    cancelled_rows,
    doubled,
    false_alarms,
    noticed,
    services,
    simulated_rows,
)
from scripts.research.many_watches import ManyWatches

DOCS = Path(__file__).parents[2] / "docs" / "alerting.md"
NOTICED = {
    "a tool fails everywhere": (0.95, 11),
    "it fails for one tenant in five": (0.6, None),
    "half of its calls fail": (0.85, 36),
    "it returns nothing": (0.9, 11),
    "half of its calls do": (0.85, 36),
    "model calls fail in 40 %": (0.95, 45),
    "model calls fail in 20 %": (0.95, 95),
}
"""The share that is noticed within 300 sessions, at least, and the median uses until then, at most."""


@pytest.mark.parametrize("of_people", [False, True])
def test_many_watches_raise_what_the_services_own_watch_raises(
    of_people: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faults that begin, that end, that become the new normal after 7 days, and a past that is halved."""
    for module in (fault_watch, many_watches):
        monkeypatch.setattr(module, "MOST", 400)
    count, an_hour = 12, 3600
    rates = np.repeat([0.0, 0.02, 0.1, 0.3], 3)
    broken = np.arange(count) % 3 * 0.4
    many = ManyWatches(count, step=an_hour, of_people=of_people)
    one = [FaultWatch(of_people=of_people) for _ in range(count)]
    rng = np.random.default_rng(0)
    events: list[str | None] = []
    for use in range(1000):
        is_broken = 200 <= use < 230 or 400 <= use < 900
        failed = rng.random(count) < rates + broken * is_broken
        raised = many.feed(failed)
        found = [
            watch.feed(bool(each), use * an_hour, use * an_hour)
            for watch, each in zip(one, failed, strict=True)
        ]
        events += found
        assert [each == "raised" for each in found] == raised.tolist()
        assert [each.state.fault is not None for each in one] == many.raised.tolist()

    assert events.count("raised") > events.count("over") > 4


@pytest.mark.heavy
@pytest.mark.heavy
def test_a_month_without_change_raises_next_to_nothing() -> None:
    names = ("20 % fail, independent", "2 % fail, in clumps of mean 2")

    assert max(false_alarms([SIMULATED[name] for name in names], months=4)) <= 0.5


def test_a_share_of_stopped_runs_that_doubles_is_noticed() -> None:
    found = doubled(0.2, 1000, runs=100)

    assert sum(each is not None for each in found) >= 80


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tables_in_the_docs_are_what_the_simulation_prints() -> None:
    docs, rows = DOCS.read_text(), [*simulated_rows(), *cancelled_rows()]

    assert [row for row in rows if row not in docs] == []


# Recordings of real agents are not part of the project: SPANWISE_LABELLED names a folder of them.
if "SPANWISE_LABELLED" in os.environ:

    @pytest.mark.timeout(600)
    def test_planted_faults_are_noticed_in_real_sessions_and_nothing_else_is_named() -> None:
        real = services(Path(os.environ["SPANWISE_LABELLED"]))
        busy = {name: some for name, some in real.items() if len(some) >= 100}
        for plant in PLANTS:
            share, most = NOTICED[plant.name]
            found = [
                noticed(some, plant, past, f"{name} {number}")
                for name, some in busy.items()
                for past in (400, 1000)
                for number in range(20)
            ]
            uses = sorted(each.uses for each in found if each.sessions is not None)
            assert len(uses) >= share * len(found), plant.name
            assert most is None or uses[len(uses) // 2] <= most, plant.name
            assert not any(each.named for each in found), plant.name
