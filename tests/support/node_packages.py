"""Packages of npm that tests use, installed from the lock file in a folder of tests/support, once for all processes.

Without node or npm a test that needs them skips, loudly; SPANWISE_REQUIRE_NODE=1 makes that a failure.
"""

import shutil
from pathlib import Path

from tests.support.processes import ran
from tests.support.required import missing
from tests.support.turns import exclusive

ROOT = Path(__file__).parents[2]


def installed(name: str, what: str) -> Path:
    """The folder with `node_modules` of tests/support/<name>, and the other files of that folder beside it.

    Args:
        name: The folder in tests/support.
        what: What is not tested where they cannot be installed.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing("NODE", f"{what.upper()} NOT TESTED: node and npm are not installed")
    source, target = ROOT / "tests" / "support" / name, ROOT / ".cache" / name
    with exclusive(name):
        target.mkdir(parents=True, exist_ok=True)
        for each in source.iterdir():
            shutil.copy(each, target / each.name)
        lock = (source / "package-lock.json").read_bytes()
        stamp = target / "installed-lock.json"
        if not stamp.exists() or stamp.read_bytes() != lock:
            _install(npm, target, what)
            stamp.write_bytes(lock)
    return target


def _install(npm: str, target: Path, what: str) -> None:
    done = ran(npm, "ci", "--ignore-scripts", cwd=target, timeout=100)
    if done.returncode != 0:
        missing("NODE", f"{what.upper()} NOT TESTED: npm ci failed: {done.stderr[-500:]}")
