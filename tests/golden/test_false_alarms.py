"""Healthy agents are not red, agents in trouble are: bounds over recordings of real libraries.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

from __future__ import annotations

from functools import cache

import pytest

from scripts.false_alarms import HEALTHY, TROUBLED, Row, rows, table
from tests.golden.test_captures import FOLDER


@cache
def found() -> list[Row]:
    return rows(FOLDER)


def share(hits: int, of: int) -> float:
    assert of > 0, "no recording to judge"
    return hits / of


def test_the_recordings_hold_both_kinds() -> None:
    scenarios = {row.scenario for row in found()}

    assert len(scenarios & HEALTHY) >= 3
    assert len(scenarios & TROUBLED) >= 2


def names() -> list[str]:
    return sorted({row.evaluator for row in found() if row.success is not None})


@pytest.mark.parametrize("evaluator", names())
def test_of_an_evaluators_outcomes_on_healthy_runs_at_most_one_in_a_hundred_fails(
    evaluator: str,
) -> None:
    judged = [
        row
        for row in found()
        if row.evaluator == evaluator and row.scenario in HEALTHY and row.success is not None
    ]
    failed = [row for row in judged if not row.success]

    # Of fewer than a hundred outcomes one may fail.
    assert len(failed) <= max(1, 0.01 * len(judged)), failed


def reliability(scenarios: frozenset[str]) -> dict[tuple[str, str], float]:
    return {
        (row.stack, row.scenario): row.score
        for row in found()
        if row.evaluator == "agent_reliability"
        and row.scenario in scenarios
        and row.score is not None
    }


def test_healthy_sessions_are_reliable() -> None:
    healthy = reliability(HEALTHY)

    assert share(sum(score < 0.8 for score in healthy.values()), len(healthy)) <= 0.05


def test_a_recovered_error_is_no_unreliability() -> None:
    retried = reliability(frozenset({"retry"}))

    assert retried
    assert {where: score for where, score in retried.items() if score < 0.8} == {}


def test_troubled_sessions_are_unreliable() -> None:
    troubled = reliability(TROUBLED)

    assert share(sum(score < 0.5 for score in troubled.values()), len(troubled)) >= 0.95


def test_blind_sessions_are_never_perfect() -> None:
    blind = [row for row in found() if row.reason in {"no_content", "low_coverage"}]

    assert blind
    assert {row.score for row in blind} == {None}


def test_the_table_names_every_evaluator() -> None:
    text = table(found())

    assert all(f"`{name}`" in text for name in names())
