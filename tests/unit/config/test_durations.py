"""Durations without a unit are seconds, from wherever they come, and shown with theirs."""

from pathlib import Path

import pytest

from collector.base.errors import ConfigError
from collector.config.load import load
from collector.config.values import show_duration


@pytest.mark.parametrize("written", ["30", "30s", '"30"', "0.5m", "30000ms"])
def test_a_number_alone_is_seconds_in_a_file(tmp_path: Path, written: str) -> None:
    file = tmp_path / "user.yaml"
    file.write_text(f"windows: {{trace: {{idle: {written}}}}}\n")

    assert load([file], {}, []).windows.trace.idle == 30


def test_it_is_in_the_environment_and_on_the_command_line_too() -> None:
    by_environment = load([], {"SPANWISE_WINDOWS__TRACE__IDLE": "30"}, [])
    by_option = load([], {}, ["windows.trace.idle=30"])

    assert by_environment == by_option
    assert by_option.windows.trace.idle == 30


@pytest.mark.parametrize("written", ["30 seconds", "30sec", "1h30m", "-", "[30]"])
def test_what_is_no_duration_is_one_line_that_says_what_is(written: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load([], {}, [f"windows.trace.idle={written}"])

    (line,) = str(raised.value).splitlines()
    assert line.startswith("windows.trace.idle: expected a duration such as 500ms, 5s, 30m or 24h")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(30.0, "30s"), (-5.0, "-5s"), (5400.0, "90m"), (0.25, "250ms")]
)
def test_a_duration_is_shown_as_a_user_writes_it(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown
