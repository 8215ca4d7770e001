"""Every supported Python that this machine has installs the lock file, scores a recording and passes the tests."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.processes import ran
from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
VERSIONS = [v for each in CLASSIFIERS for v in re.findall(r"Python :: (3\.\d+)$", each)]
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
RECORDING = ROOT / "tests" / "data" / "captures" / "strands" / "session.otlp"


def python(version: str) -> str | None:
    """One of pyenv's, whose names on PATH run only what it has chosen; else one on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    own = sorted(str(each) for each in pyenv.glob(f"{version}.*/bin/python"))
    return own[-1] if own else shutil.which(f"python{version}")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_lock_file_is_enough_to_score_a_recording(version: str, tmp_path: Path) -> None:
    own = _made(version, tmp_path, "requirements.lock")
    imported = run([own, "-c", "import collector.service.app, collector.judging.child, litellm"])
    assert imported.returncode == 0, imported.stderr
    scored = run([own, "-m", "collector.commands.start", "evaluate", str(RECORDING)])

    assert scored.returncode == 0, scored.stderr
    assert "coherence" in scored.stdout
    assert "tool_correctness" in scored.stdout


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("version", [each for each in VERSIONS if each != OWN])
def test_the_tests_without_processes_pass_on_the_other_pythons(
    version: str, tmp_path: Path
) -> None:
    """`tests/unit`, `tests/golden` and `tests/property` with the lock file of developers."""
    own = _made(version, tmp_path, "requirements.lock", "requirements-dev.lock")
    folders = ["tests/unit", "tests/golden", "tests/property"]
    done = run([own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders], seconds=5000)

    print(done.stdout[-2000:])
    assert done.returncode == 0, done.stdout[-8000:]


def _made(version: str, folder: Path, *locks: str) -> str:
    """The interpreter of a new environment with what the lock files name."""
    found = python(version)
    if found is None:
        pytest.skip(
            f"Python {version} is supported and not on this machine: nothing was tested with it"
        )
    made = folder / "venv"
    own = str(made / "bin" / "python")
    install = [own, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-compile"]
    commands = [[found, "-m", "venv", str(made)]]
    commands += [
        [*install, "--no-deps", "--require-hashes", "-r", str(ROOT / "locks" / each)]
        for each in locks
    ]
    for command in commands:
        done = run(command)
        assert done.returncode == 0, done.stderr
    return own


def run(command: list[str], *, seconds: float = 900) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return ran(*command, env=environment, timeout=seconds)
