"""The rendered settings under the command itself, as a user would check them in the pod."""

import sys
from pathlib import Path

import pytest

from collector.config.load import load
from tests.chart.configuration import problems, written
from tests.chart.examples import objects
from tests.chart.support import render
from tests.support.processes import ran


@pytest.mark.parametrize(
    ("example", "service"), [("locked-down", "scores"), ("scaled-keda", "judge")]
)
def test_spanwise_validate_accepts_them(example: str, service: str, tmp_path: Path) -> None:
    file, environments = written(objects(example), tmp_path)
    (variables,) = (each for name, each in environments.items() if name.endswith(service))

    done = ran(
        *(sys.executable, "-m", "collector.commands.start", "validate", "--config", str(file)),
        env={**variables, "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
    )

    assert (done.stdout, done.returncode) == ("the configuration is valid\n", 0), done.stderr


def test_a_variable_that_is_no_setting_is_reported(tmp_path: Path) -> None:
    found = render("extraEnv: [{name: SPANWISE_WINDOWS__TRACE__IDEL, value: '3'}]")

    assert "idel" in "\n".join(problems(found, tmp_path))


def test_rules_of_forwarding_over_tls_arrive_in_every_pod(tmp_path: Path) -> None:
    keep = "{share: 0.05, slow: null, per_minute: 600, wait: 1m}"
    found = render(f"config: {{forward: {{endpoint: 'https://a.example.com:4317', keep: {keep}}}}}")
    file, environments = written(found, tmp_path)

    for each in environments.values():
        forward = load([file], each, []).forward
        assert forward is not None
        assert forward.endpoint == "https://a.example.com:4317"
        assert forward.keep is not None
        rules = forward.keep
        assert (rules.share, rules.slow, rules.per_minute, rules.wait) == (0.05, None, 600, 60.0)
