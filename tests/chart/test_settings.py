"""The rendered settings under the command itself, as a user would check them in the pod."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chart.configuration import problems, written
from tests.chart.examples import objects
from tests.chart.support import render


@pytest.mark.parametrize(
    ("example", "service"), [("locked-down", "scores"), ("scaled-keda", "judge")]
)
def test_spanwise_validate_accepts_them(example: str, service: str, tmp_path: Path) -> None:
    file, environments = written(objects(example), tmp_path)
    (variables,) = (each for name, each in environments.items() if name.endswith(service))

    done = subprocess.run(
        [sys.executable, "-m", "collector.commands.start", "validate", "--config", str(file)],
        env={**variables, "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("the configuration is valid\n", 0), done.stderr


def test_a_variable_that_is_no_setting_is_reported(tmp_path: Path) -> None:
    found = render("extraEnv: [{name: SPANWISE_WINDOWS__TRACE__IDEL, value: '3'}]")

    assert "idel" in "\n".join(problems(found, tmp_path))
