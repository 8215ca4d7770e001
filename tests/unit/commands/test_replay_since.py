"""`spanwise replay --since`: digits alone are a date, never seconds."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.base.errors import ConfigError
from collector.commands.replay import begin
from tests.support.command import Run

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()
DATE = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
REFUSED = (
    "--since: expected a duration such as 24h or a time such as 2026-01-31T12:00:00Z, got `24`"
)


@pytest.mark.parametrize(
    ("since", "seconds"),
    [
        (None, 0.0),
        ("24h", NOW - 86_400),
        ("20240101", DATE),
        ("2024-01-01T00:00:00Z", DATE),
        ("2024-01-01T01:00:00+01:00", DATE),
        ("2024-01-01 00:00", DATE),
    ],
)
def test_a_duration_with_a_unit_and_a_time_are_taken(since: str | None, seconds: float) -> None:
    assert begin(since, now=NOW) == seconds


@pytest.mark.parametrize("since", ["24", "h", "", "yesterday"])
def test_a_number_alone_is_refused(since: str) -> None:
    with pytest.raises(ConfigError, match="--since: expected a duration") as refused:
        begin(since, now=NOW)

    assert str(refused.value) == REFUSED.replace("`24`", f"`{since}`")


def test_the_command_says_so_in_one_line(tmp_path: Path, run: Run) -> None:
    done = run("replay", "--since", "24", "--set", f"data_dir={tmp_path}")

    assert done.complaints == [REFUSED]
