"""Starts of `spanwise` without their imports, which are two thirds of what a start costs: a process that has imported
everything is forked.

What is forked is a process like any other: its own session, folder, environment, output and end. So are its children,
see `warm_children.py`. Where the beginning of a process is the matter (its imports, its memory at rest, `-P`, Python's
environment), tests start it by exec: see `can_fork`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from collector.commands import start
from collector.commands.cli import COMMANDS
from tests.support import warm_children

ROOT = Path(__file__).parents[2]
BY_EXEC = (sys.executable, "-m", "collector.commands.start")
MODULES = ("collector.service.app", "collector.commands.demo_story", "wordllama")
"""What a service and its workers import; the commands are beside them."""
MODELS = ("collector.judging.child", "litellm")
"""What a judge imports, which takes four times as long as all else."""
SAFE = ("SPANWISE_", "OTEL_")
"""Variables that are read when a command begins, not when something is imported."""
_LARGEST = 1 << 17
"""Bytes of a request: arguments and environment, which Linux bounds to about that much in one string."""
_NUMBER = struct.Struct("i")


class Forked:
    """A process that was forked, with what callers use of `subprocess.Popen`."""

    def __init__(self, status: int) -> None:
        self._status = status
        self.returncode: int | None = None
        self.pid = _number(status)

    def poll(self) -> int | None:
        """The exit code once it has ended, a signal's number below zero."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("spanwise", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(_number(self._status))
            os.close(self._status)
        return self.returncode


class WarmProcess:
    """The process that is forked, started at the first need; it ends with the process of the tests."""

    def __init__(self, *more: str) -> None:
        """`more`: modules that it imports besides."""
        self._more = more
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        output: int,
        errors: int,
        given: int | None = None,
    ) -> Forked:
        """`spanwise ARGUMENTS` with these files as stdout, stderr and stdin, in a session of its own."""
        sys.audit("subprocess.Popen", "spanwise", arguments, cwd, None)  # see tiers.py
        os.umask(mask := os.umask(0o077))
        said = json.dumps([list(arguments), dict(environment), str(cwd), mask]).encode()
        theirs, ours = os.pipe()
        try:
            with self._lock:
                if self._process is None:
                    self._begin()
                files = [given or self._nothing, output, errors, ours]
                socket.send_fds(self._link, [said], files)
        finally:
            os.close(ours)
        return Forked(theirs)

    def _begin(self) -> None:
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LARGEST)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm", str(theirs.fileno()), *self._more],
                cwd=ROOT,
                env={**os.environ, **_FOR_IMPORTS},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._nothing = os.open(os.devnull, os.O_RDONLY)
        atexit.register(self.end)

    def end(self) -> None:
        """What was forked goes on."""
        if self._process is not None:
            self._link.close()
            os.close(self._nothing)
            self._process.wait(30)
            self._process = None


_FOR_IMPORTS = {
    "GRPC_ENABLE_FORK_SUPPORT": "0",  # as the command sets it
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # as the judge sets it
    "OPENBLAS_NUM_THREADS": "1",  # a fork copies one thread alone
}
"""Variables that imports read; what is forked has its own."""
_WARM = WarmProcess()
_WARM_WITH_MODELS = WarmProcess(*MODELS)


def warm(arguments: Sequence[str]) -> WarmProcess:
    """Of this process of tests: the one that has imported what a process with these arguments needs."""
    asks = any(each.startswith(("judge", "embedder.kind=litellm")) for each in arguments)
    return _WARM_WITH_MODELS if asks and arguments[0] == "run" else _WARM


def started(
    arguments: Sequence[str],
    given: Mapping[str, str],
    files: tuple[IO[bytes], IO[bytes]],
    *,
    cwd: Path = ROOT,
    tree: Path = ROOT,
    by_exec: Sequence[str] = (),
) -> "Forked | subprocess.Popen[bytes]":
    """`spanwise ARGUMENTS` with these variables besides, and with these files as stdout and stderr.

    `by_exec`: the command that it begins with where it may not be forked; `tree`: where its packages are.
    """
    environment = environment_of(given, tree)
    output, errors = files
    if not by_exec and can_fork(given):
        return warm(arguments).start(arguments, environment, cwd, output.fileno(), errors.fileno())
    return subprocess.Popen(
        [*(by_exec or BY_EXEC), *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        env=environment,
    )


def environment_of(given: Mapping[str, str], tree: Path = ROOT) -> dict[str, str]:
    """This process's with what is given, and a tree's packages before any that is installed."""
    path = given.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return {**os.environ, **given, "PYTHONPATH": os.pathsep.join((str(tree), path)).rstrip(":")}


def can_fork(given: Mapping[str, str]) -> bool:
    """Whether these variables mean nothing to what has been imported; how output is buffered is set in the fork."""
    return all(each.startswith(SAFE) or each in ("TMPDIR", "PYTHONUNBUFFERED") for each in given)


def _number(file: int) -> int:
    data = os.read(file, _NUMBER.size)
    if len(data) < _NUMBER.size:
        raise AssertionError("the process that is forked, or the one that waits for it, has ended")
    return _NUMBER.unpack(data)[0]


# --- inside the process that is forked --------------------------------------------------------------------------------


def _serve(link: socket.socket) -> list[str]:
    """Return in each forked process, with its arguments; end when no one can ask any more."""
    while True:
        said, files, _, _ = socket.recv_fds(link, _LARGEST, 4)
        _reap(os.WNOHANG)
        if not said:
            sys.exit()
        if os.fork() == 0:
            link.close()
            return _forked(json.loads(said), files)
        for each in files:
            os.close(each)


def _reap(how: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, how)[0]:
            pass


def _forked(said: tuple[list[str], dict[str, str], str, int], files: Sequence[int]) -> list[str]:
    """The process asked for; the one between, which waits for it and says how it ended, never returns."""
    *standard, status = files
    if pid := os.fork():
        for each in (*standard, 0, 1, 2):
            os.close(each)
        os.write(status, _NUMBER.pack(os.waitpid(pid, 0)[1]))
        os._exit(0)
    arguments, environment, cwd, mask = said
    os.umask(mask)
    os.setsid()
    for number, each in enumerate(standard):
        os.dup2(each, number)
        os.close(each)
    os.write(status, _NUMBER.pack(os.getpid()))
    os.close(status)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


def _begin(arguments: Sequence[str]) -> None:
    """What the interpreter does as it begins with `-m collector.commands.start`."""
    sys.argv = ["spanwise", *arguments]
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as a text
    tempfile.tempdir = None
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(write_through="PYTHONUNBUFFERED" in os.environ)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def _main() -> int:
    link = socket.socket(fileno=int(sys.argv[1]))
    path = list(sys.path)
    gc.disable()  # a third of the time of these imports
    for name in (*MODULES, *sys.argv[2:], *(f"collector.commands.{each}" for each in COMMANDS)):
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a fork copies one thread alone"  # noqa: PTH208
    logging.root.handlers.clear()  # wordllama's import sets up logging, litellm's too
    logging.root.setLevel(logging.WARNING)
    gc.collect()
    gc.enable()
    gc.freeze()  # else the first look for garbage would copy all pages
    arguments = _serve(link)
    sys.path[:] = path[1:]
    _begin(arguments)
    warm_children.lend()
    return start.main()


if __name__ == "__main__":
    sys.exit(_main())
