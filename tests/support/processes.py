"""Programs that tests need and start: looked for, given ports, run to their end; and what the system says of them."""

import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

import pytest

from tests.support.tiers import exclusive

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "collector.commands.start")
_TICKS = os.sysconf("SC_CLK_TCK")


def ran(
    *command: str | Path,
    timeout: float = 60.0,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    input: str | None = None,  # noqa: A002 - its name in `subprocess`
) -> subprocess.CompletedProcess[str]:
    """Its exit code and what it wrote, as text. Without `input` it can read nothing."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        input="" if input is None else input,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def started(
    arguments: Sequence[str],
    given: Mapping[str, str],
    files: tuple[IO[bytes], IO[bytes]],
    *,
    cwd: Path = ROOT,
    tree: Path = ROOT,
    command: Sequence[str] = COMMAND,
) -> subprocess.Popen[bytes]:
    """`spanwise ARGUMENTS` in a session of its own, with these variables besides, and these files as stdout and stderr.

    `tree`: where its packages are.
    """
    output, errors = files
    return subprocess.Popen(
        [*command, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        env=environment_of(given, tree),
    )


def environment_of(given: Mapping[str, str], tree: Path = ROOT) -> dict[str, str]:
    """This process's with what is given, and a tree's packages before any that is installed."""
    path = given.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return {**os.environ, **given, "PYTHONPATH": os.pathsep.join((str(tree), path)).rstrip(":")}


def cpu_seconds(pid: int, *, reaped: bool = False) -> float:
    """User and system time of a process so far; `reaped`: and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if reaped else 13])) / _TICKS


def status(pid: int, name: str) -> int:
    """A number of `/proc/PID/status`; memory in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(name)


def missing(name: str, why: str) -> NoReturn:
    """Skip, or fail where SPANWISE_REQUIRE_<NAME>=1 says that it is here."""
    if os.environ.get(f"SPANWISE_REQUIRE_{name}") == "1":
        pytest.fail(f"{why} (SPANWISE_REQUIRE_{name}=1)")
    pytest.skip(why)


_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_chance = (
    random.Random()
)  # its own: pytest-randomly gives the common one the same seed for every test


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which no one listens.

    They lie below the range from which the kernel takes the ports of outgoing connections: a port in that range can
    be taken by any client between this call and the server's start, and while the server is down.
    """
    lowest_ephemeral = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 32_768
    found: list[int] = []
    while len(found) < count:
        port = _chance.randrange(_LOWEST, max(lowest_ephemeral, _LOWEST + 1000))
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


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
