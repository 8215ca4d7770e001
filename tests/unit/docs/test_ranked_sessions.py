"""The command behind the table of ranked sessions."""

import json
import struct
from pathlib import Path

from scripts.research.ranked_sessions import auroc, runs, table
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
