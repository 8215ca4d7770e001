"""Healthy agents are not red, agents in trouble are: bounds over recordings of real libraries (docs/evidence.md).

`SPANWISE_CAPTURES` and `SPANWISE_LOG_CAPTURES` name other folders of recordings; those in the tree hold every kind.
"""

from collections.abc import Collection
from functools import cache
from pathlib import Path

import pytest

from scripts.research.false_alarms import HEALTHY, RECORDINGS, RECOVERED, TROUBLED, Row, rows, table
from tests.golden.test_captures import FOLDER
from tests.golden.test_log_captures import FOLDER as LOG_FOLDER

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

FOLDERS = (FOLDER, LOG_FOLDER)


@cache
def found(*folders: Path) -> list[Row]:
    return rows(*folders)


def reliability(scenarios: Collection[str]) -> list[Row]:
    every = [row for row in found(*FOLDERS) if row.evaluator == "agent_reliability"]
    scored = [row for row in every if row.scenario in scenarios and row.score is not None]
    assert scored or FOLDERS != RECORDINGS
    return scored


def below(line: float, sessions: Collection[Row]) -> list[Row]:
    return [row for row in sessions if row.score is not None and row.score < line]


def test_of_an_evaluators_outcomes_on_healthy_runs_at_most_one_in_a_hundred_fails() -> None:
    judged = [row for row in found(*FOLDERS) if row.scenario in HEALTHY and row.success is not None]

    for name in {row.evaluator for row in judged}:
        mine = [row for row in judged if row.evaluator == name]
        failed = [row for row in mine if not row.success]
        # Of fewer than a hundred outcomes one may fail.
        assert len(failed) <= max(1, 0.01 * len(mine)), failed


def test_healthy_sessions_are_reliable() -> None:
    healthy = reliability(HEALTHY)

    assert len(below(0.8, healthy)) <= 0.05 * len(healthy), below(0.8, healthy)


def test_a_recovered_error_is_no_unreliability() -> None:
    assert below(0.8, reliability({RECOVERED})) == []


def test_sessions_in_trouble_are_unreliable() -> None:
    troubled = reliability(TROUBLED)
    seen = below(0.5, troubled)

    assert len(seen) >= 0.95 * len(troubled), [row for row in troubled if row not in seen]


def test_blind_sessions_are_never_perfect() -> None:
    blind = [row for row in found(*FOLDERS) if row.reason in {"no_content", "low_coverage"}]

    assert blind or FOLDERS != RECORDINGS
    assert {row.score for row in blind} <= {None}


def test_the_page_shows_the_tables_of_the_recordings_in_the_tree() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text().splitlines()

    assert [line for line in table(found(*RECORDINGS)).splitlines() if line not in page] == []
