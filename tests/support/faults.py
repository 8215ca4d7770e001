"""The service with a fault that a test switches on and off: `python -m tests.support.faults run ...`.

The environment variable of `VARIABLE` names a file. While it holds `PLACE KIND`, every use of that place fails. Places
are those of the libraries below Spanwise, so that no name of its own is patched.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import lmdb
from prometheus_client import Counter

VARIABLE = "FAULT_OF_THE_TEST"


class PlantedError(Exception):
    """An error that nobody foresaw."""


_KINDS: Mapping[str, Callable[[], Exception]] = {
    "lmdb": lambda: lmdb.DiskError("mdb_txn_commit: No space left on device"),
    "read-only": lambda: lmdb.Error("mdb_txn_commit: Read-only file system"),
    "full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "io": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "bug": lambda: PlantedError("planted by a test"),
}


def _check(place: str) -> None:
    try:
        wanted, _, kind = Path(os.environ[VARIABLE]).read_text().partition(" ")
    except OSError:
        return
    if wanted != place:
        return
    raise _KINDS[kind]()


class _Environment:
    """An LMDB environment whose write transactions fail on demand; the rest is the real one's."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def begin(self, *given: Any, write: bool = False, **settings: Any) -> Any:
        if write:
            _check("index")
        return self._real.begin(*given, write=write, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def plant() -> None:
    """Wrap the libraries."""
    libraries: Any = lmdb
    counters: Any = Counter
    calls: Any = import_module("grpc.aio._channel").UnaryUnaryMultiCallable
    real_open, real_fsync, real_inc = libraries.open, os.fsync, counters.inc

    def opened(path: str, *given: Any, **settings: Any) -> Any:
        env = real_open(path, *given, **settings)
        return _Environment(env) if Path(path).name == "index" else env

    def fsync(descriptor: int) -> None:
        if "signals.jsonl" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            _check("jsonl")
        real_fsync(descriptor)

    def inc(counter: Any, *given: Any, **settings: Any) -> None:
        if counter._name == "spanwise_evaluations":
            _check("metrics")
        real_inc(counter, *given, **settings)

    def call(self: Any, *given: Any, **settings: Any) -> Any:
        _check("forward")
        return called(self, *given, **settings)

    called = calls.__call__
    libraries.open = opened
    os.fsync = fsync
    counters.inc = inc
    calls.__call__ = call


if __name__ == "__main__":
    plant()
    from collector.cli import main

    sys.exit(main())
