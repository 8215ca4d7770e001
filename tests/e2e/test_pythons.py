"""Every supported Python that this machine has installs the lock file and scores a recording."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
VERSIONS = [v for each in CLASSIFIERS for v in re.findall(r"Python :: (3\.\d+)$", each)]
RECORDING = ROOT / "tests" / "data" / "captures" / "strands" / "session.otlp"


def python(version: str) -> str | None:
    """One on PATH, else one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    own = sorted(str(each) for each in pyenv.glob(f"{version}.*/bin/python"))
    return shutil.which(f"python{version}") or (own[-1] if own else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_lock_file_is_enough_to_score_a_recording(version: str, tmp_path: Path) -> None:
    found = python(version)
    if found is None:
        pytest.skip(
            f"Python {version} is supported and not on this machine: nothing was tested with it"
        )
    made = tmp_path / "venv"
    own = str(made / "bin" / "python")
    lock = ["--no-deps", "--require-hashes", "-r", str(ROOT / "requirements.lock")]
    for command in (
        [found, "-m", "venv", str(made)],
        [own, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-compile", *lock],
        [own, "-c", "import collector.app, collector.judging.child, litellm"],
    ):
        done = run(command)
        assert done.returncode == 0, done.stderr
    scored = run([own, "-m", "collector.cli", "evaluate", str(RECORDING)])

    assert scored.returncode == 0, scored.stderr
    assert "coherence" in scored.stdout
    assert "tool_correctness" in scored.stdout


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
