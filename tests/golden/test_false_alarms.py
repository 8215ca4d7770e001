"""Healthy agents are not red, agents in trouble are: bounds over recordings and everyday sessions (docs/evidence.md).

`SPANWISE_CAPTURES` and `SPANWISE_LOG_CAPTURES` name other folders of recordings; those in the tree hold every kind.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from collector.config.tree import Config
from scripts.research.false_alarms import HEALTHY, RECORDINGS, RECOVERED, TROUBLED, Row, rows, table
from tests.golden.test_captures import FOLDER
from tests.golden.test_log_captures import FOLDER as LOG_FOLDER
from tests.support.everyday import RECORDERS, Session, long_sessions, sessions, write
from tests.support.recorded_signals import signals_of

FOLDERS = (FOLDER, LOG_FOLDER)
KINDS = {**dict.fromkeys(HEALTHY, "healthy"), **dict.fromkeys(TROUBLED, "troubled")}
KINDS[RECOVERED] = "recovered"


class Found(NamedTuple):
    """One outcome of one session."""

    kind: str
    """Healthy, troubled, or recovered: a call failed before it succeeded, so it is reliable and not free of faults."""
    session: str
    evaluator: str
    score: float | None
    success: bool | None


@cache
def recorded_rows(*folders: Path) -> list[Row]:
    return rows(*folders)


@cache
def recorded() -> list[Found]:
    return [
        Found(
            KINDS.get(row.scenario, ""),
            f"{row.stack}/{row.scenario}",
            row.evaluator,
            row.score,
            row.success,
        )
        for row in recorded_rows(*FOLDERS)
    ]


@cache
def everyday_sessions() -> Mapping[str, Mapping[str, Session]]:
    return {
        "healthy": {**sessions("talks"), **sessions("jobs"), **long_sessions()},
        "troubled": sessions("troubles"),
    }


@cache
def everyday() -> list[Found]:
    found: list[Found] = []
    for kind, chosen in everyday_sessions().items():
        with TemporaryDirectory() as folder:
            path = Path(folder) / "everyday.otlp"
            write(path, chosen)
            for each in signals_of(Config(workers=0), path):
                name = each["session_id"]
                is_recovered = name.startswith("recovered: ")
                of = "recovered" if is_recovered else kind
                found.append(Found(of, name, each["evaluator"], each["score"], each["success"]))
    return found


Source = Callable[[], list[Found]]
HEAVY = [pytest.mark.heavy, pytest.mark.timeout(300)]
of_each_source = pytest.mark.parametrize("source", [pytest.param(recorded, marks=HEAVY), everyday])


def reliability(source: Source, *kinds: str) -> list[tuple[float, str]]:
    """Scores and names of sessions of these kinds."""
    found = [each for each in source() if each.evaluator == "agent_reliability"]
    scored = [(s.score, s.session) for s in found if s.kind in kinds and s.score is not None]
    assert scored or (source is recorded and FOLDERS != RECORDINGS)
    return scored


@of_each_source
def test_of_an_evaluators_outcomes_on_healthy_runs_at_most_one_in_a_hundred_fails(
    source: Source,
) -> None:
    judged = [each for each in source() if each.kind == "healthy" and each.success is not None]

    for name in {each.evaluator for each in judged}:
        mine = [each for each in judged if each.evaluator == name]
        failed = [each for each in mine if not each.success]
        # Of fewer than a hundred outcomes of recordings one may fail.
        assert len(failed) <= max(int(source is recorded), 0.01 * len(mine)), failed


@of_each_source
def test_healthy_sessions_are_reliable(source: Source) -> None:
    healthy = reliability(source, "healthy")
    low = [each for each in healthy if each[0] < 0.8]

    assert len(low) <= 0.05 * len(healthy), low


@of_each_source
def test_a_recovered_error_is_no_unreliability(source: Source) -> None:
    assert [each for each in reliability(source, "recovered") if each[0] < 0.8] == []


@of_each_source
def test_sessions_in_trouble_are_unreliable(source: Source) -> None:
    troubled = reliability(source, "troubled")
    missed = [each for each in troubled if each[0] >= 0.5]

    assert len(missed) <= 0.05 * len(troubled), missed


def test_every_everyday_session_is_scored() -> None:
    scored = reliability(everyday, "healthy", "recovered", "troubled")

    assert len(scored) == len(RECORDERS) * sum(map(len, everyday_sessions().values()))


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_blind_sessions_are_never_perfect_and_the_page_shows_the_tables_of_the_recordings() -> None:
    found = recorded_rows(*FOLDERS)
    blind = [row for row in found if row.reason in {"no_content", "low_coverage"}]
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text().splitlines()

    assert blind or FOLDERS != RECORDINGS
    assert {row.score for row in blind} <= {None}
    shown = table(recorded_rows(*RECORDINGS)).splitlines()
    assert [line for line in shown if line not in page] == []
