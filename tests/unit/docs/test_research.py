"""The commands behind the tables of ranked sessions and of second opinions."""

import json
import struct
from pathlib import Path

import pytest

from evaluators.formulas.release_verdict import LOOKS
from evaluators.formulas.second_opinion import opinion_looks
from scripts.research.ranked_sessions import auroc, runs, table
from scripts.research.second_opinions import JUDGES, USUAL, looks, seeded
from tests.support import agents


def test_sessions_that_loop_rank_below_those_that_do_not(tmp_path: Path) -> None:
    turns = [
        agents.Turn(service="shop", session=f"s-{n}", number=n, loops=n > 9 and n % 2 == 0)
        for n in range(16)
    ]
    with (tmp_path / "runs.otlp").open("wb") as file:
        for request in agents.requests(turns):
            file.write(struct.pack(">I", len(request)) + request)
    labels = {
        each.session: {"success": not each.loops, "set": "a", "domain": "d", "task_id": "1"}
        for each in turns
    }
    (tmp_path / "labels.json").write_text(json.dumps(labels))

    found = runs(tmp_path)

    assert sum("work_baseline" in each.scores for each in found) == 6
    assert "| a | 16 | 3 | 38%, " in table(found)
    assert (auroc([(each.combined, each.success) for each in found]) or 0.0) > 0.9


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
