"""What docs/judges.md says that a judge costs: the sessions of docs/evidence.md times its prices of one session."""

import re
from pathlib import Path

import pytest

from collector.config.tree import JudgeMore
from collector.watch.second_opinions import MOST

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "judges.md").read_text()
SIMULATED = re.findall(
    r"^\| (?:graded|pass or fail) \| (\S+) \|.*\| (\d+), (\d+), (\d+) \|$",
    (DOCS / "evidence.md").read_text(),
    re.MULTILINE,
)
"""AUROC, and the sessions asked about in drops to 80 % and 50 % failing, and where nothing is lost."""


def asked(column: int, auroc: str = "") -> tuple[int, int]:
    found = [int(row[column]) for row in SIMULATED if auroc in row[0]]
    return min(found), max(found)


NEW = JudgeMore().new_version or 0
SESSIONS = {
    "a sample of .05": (48, 48),
    "a release": (NEW, 2 * NEW),
    "AUROC of .93": asked(1, "0.93"),
    "a judge with .69": asked(1, "0.69"),
    "nothing is lost": asked(3),
    "however many drops": (MOST, MOST),
}


@pytest.mark.parametrize("what", SESSIONS)
def test_a_price_is_that_of_its_sessions(what: str) -> None:
    (row,) = (each for each in PAGE.splitlines() if each.startswith("|") and what in each)
    *_, sessions, usd, _ = (each.strip() for each in row.split("|"))
    least, most = SESSIONS[what]
    (low, high), *_ = re.findall(r"costs (0\.\d+) to (0\.\d+) USD", PAGE)

    assert sessions.removeprefix("at most ") == (str(most) if least == most else f"{least}-{most}")
    assert usd == f"{least * float(low):.1f}-{most * float(high):.1f}"
