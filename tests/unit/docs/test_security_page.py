"""SECURITY.md holds the threat model: who reaches which port, what is trusted, and every limit with its number."""

import re
from functools import reduce
from pathlib import Path
from pkgutil import resolve_name

import pytest

from collector.config.tree import Config
from tests.support.table import for_each

PAGE = (Path(__file__).parents[3] / "SECURITY.md").read_text()
LIMITS = PAGE.partition("## Limits")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| ([^|]+) \| ([\d.,]+)(?: (\w+))? \| `([\w.]+)` \|$", LIMITS, re.MULTILINE)
BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@pytest.mark.parametrize("port", ["4317", "4318", "4390"])
def test_every_port_says_who_may_reach_it(port: str) -> None:
    assert re.search(rf"^\| {port} \(`[\w.]+`\) \| [^|]+ \| [^|]{{20,}} \|$", PAGE, re.MULTILINE)


def test_every_row_of_the_limits_is_read() -> None:
    lines = [each for each in LIMITS.splitlines() if each.startswith("| ")]

    assert len(ROWS) == len(lines) - 1
    assert len(ROWS) >= 10


@for_each(("what", "number", "unit", "where"), ROWS)
def test_a_limit_is_what_the_code_keeps_to(what: str, number: str, unit: str, where: str) -> None:
    said = float(number.replace(",", "")) * BYTES.get(unit, 1)

    assert said == _value(where), what


def _value(where: str) -> object:
    """Of a setting's default, or of a constant by its full name."""
    if where.startswith(("collector.", "evaluators.")):
        return resolve_name(where)
    return reduce(getattr, where.split("."), Config())
