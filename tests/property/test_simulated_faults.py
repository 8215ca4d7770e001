"""Faults are noticed as fast as promised, and no more false alarms are raised than promised (docs/alerting.md).

The simulation runs the service's own watches with fixed seeds. `SPANWISE_LABELLED` names a folder of recordings whose
sessions are drawn again and again.
"""

import os
from pathlib import Path

import pytest

from scripts.research.faults import (
    PLANTS,
    SIMULATED,
    doubled,
    false_alarms,
    noticed,
    services,
    simulated_rows,
)

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


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["20 % fail, independent", "2 % fail, in clumps of mean 2"])
def test_a_month_without_change_raises_next_to_nothing(name: str) -> None:
    assert false_alarms(dict(SIMULATED)[name], months=1) <= 1


def test_a_share_of_stopped_runs_that_doubles_is_noticed() -> None:
    found = doubled(0.2, 1000, runs=20)

    assert sum(each is not None for each in found) >= 14


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_table_in_the_docs_is_what_the_simulation_prints() -> None:
    docs = DOCS.read_text()

    assert [row for row in simulated_rows(short=False) if row not in docs] == []


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
