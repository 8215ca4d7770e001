"""`spanwise replay --since`: digits alone are a date, never seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import spanwise


@pytest.mark.parametrize("since", ["24h", "20240101", "2024-01-01T00:00:00Z"])
def test_a_duration_with_a_unit_and_a_time_are_taken(tmp_path: Path, since: str) -> None:
    done = spanwise("replay", "--since", since, "--set", f"data_dir={tmp_path}")

    assert done.complaints == [f"data_dir: there is no log in {tmp_path}"]


def test_a_number_alone_is_refused(tmp_path: Path) -> None:
    done = spanwise("replay", "--since", "24", "--set", f"data_dir={tmp_path}")

    assert done.complaints == [
        "--since: expected a duration such as 24h or a time such as 2026-01-31T12:00:00Z, got `24`"
    ]
