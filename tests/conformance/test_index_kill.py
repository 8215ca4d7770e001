"""An index whose process is killed has everything that it had synced, each trace with its signals."""

import subprocess
import sys
from pathlib import Path

import pytest

from collector.api.query import Query
from tests.support.index_child import index_in
from tests.support.service import ROOT

pytestmark = pytest.mark.process


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_after_a_kill_the_index_has_what_it_had_synced(tmp_path: Path, lines: int) -> None:
    synced = killed_after(tmp_path, lines)

    index = index_in(tmp_path)
    query = Query(index)
    shown = [query.session(f"s-{number}") for number in range(synced)]
    agents = query.agents(limit=10).items
    later = query.sessions(limit=500).items
    index.close()

    assert synced >= 8 * lines
    assert all(len(each) == 1 for each in shown)
    assert all(len(each[0].traces[0].signals) == 1 for each in shown)
    assert sum(agent.sessions for agent in agents) == len(later) >= min(synced, 500)


def killed_after(folder: Path, lines: int) -> int:
    """Fill an index in a process that is killed in the middle of its work; how many traces it said were synced."""
    command = [sys.executable, "-m", "tests.support.index_child", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        said += child.stdout.readlines()
    whole = [each for each in said if each.endswith("\n")]
    return int(whole[-1])
