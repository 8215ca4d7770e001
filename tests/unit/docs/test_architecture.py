"""docs/architecture.md names every kind of record on topic `traces`, which has the most."""

import re
from pathlib import Path
from typing import get_args

from collector.records.traces import TracesTopic

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
NUMBERS = {8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}


def test_every_kind_of_record_on_traces_is_named() -> None:
    text = PAGE.read_text("utf-8")
    (row,) = re.findall(r"^\| `traces` \| session key \| (.*?) \|", text, re.MULTILINE)
    kinds = {each.__struct_config__.tag for each in get_args(TracesTopic)}

    assert set(re.findall(r"`(\w+)`", row)) - {"spans"} == kinds
    assert f"Topic `traces` has {NUMBERS[len(kinds)]} kinds of record" in text
