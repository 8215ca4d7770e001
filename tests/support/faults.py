"""The service with faults that a test switches on and off: `python -m tests.support.faults run ...`.

The environment variable of `VARIABLE` names a file. While it holds lines `PLACE KIND`, every use of these places fails.
Places are those of the libraries below Spanwise, so that no name of its own is patched.
"""

import asyncio
import errno
import os
import sqlite3
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import lmdb
from prometheus_client import Counter, Gauge

VARIABLE = "FAULT_OF_THE_TEST"
KINDS: Final = ("full", "io", "read-only", "bug")
_ERRNO = {"full": errno.ENOSPC, "io": errno.EIO, "read-only": errno.EROFS}
_SQLITE = {
    "full": sqlite3.SQLITE_FULL,
    "io": sqlite3.SQLITE_IOERR,
    "read-only": sqlite3.SQLITE_READONLY,
}
_FAMILIES = {
    "spanwise_evaluations": "metrics",
    "spanwise_traces_closed": "assemble",
    "spanwise_sessions_active": "score",
    "spanwise_spans_received": "receive",
}


class PlantedError(Exception):
    """An error that nobody foresaw."""


def switch_on(switch: Path, places: Iterable[str], kind: str) -> None:
    """From now on these places fail; the file appears whole."""
    new = switch.with_suffix(".new")
    new.write_text("".join(f"{each} {kind}\n" for each in places))
    new.replace(switch)


def _check(place: str) -> None:
    try:
        lines = Path(os.environ[VARIABLE]).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        wanted, _, kind = line.partition(" ")
        if wanted == place:
            raise _error(place, kind)


def _error(place: str, kind: str) -> Exception:
    if kind == "bug":
        return PlantedError("planted by a test")
    text = os.strerror(_ERRNO[kind])
    if place == "index":
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = _SQLITE[kind]
        return error
    if place != "log":
        return OSError(_ERRNO[kind], text)
    made = lmdb.DiskError if kind == "full" else lmdb.Error
    return made(f"mdb_txn_commit: {text}")


class _Environment:
    """An LMDB environment whose write transactions fail on demand; the rest is the real one's."""

    def __init__(self, real: Any, place: str) -> None:
        self._real = real
        self._place = place

    def begin(self, *given: Any, write: bool = False, **settings: Any) -> Any:
        if write:
            _check(self._place)
        return self._real.begin(*given, write=write, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Connection(sqlite3.Connection):
    """A connection to the index whose write transactions fail on demand."""

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        if sql == "BEGIN IMMEDIATE":
            _check("index")
        return super().execute(sql, *given)


def plant() -> None:
    """Wrap the libraries."""
    _plant_in_files()
    _plant_in_families()
    _plant_in_connections()


def _plant_in_files() -> None:
    libraries: Any = lmdb
    databases: Any = sqlite3
    real_open, real_connect, real_fsync = libraries.open, databases.connect, os.fsync

    def opened(path: str, *given: Any, **settings: Any) -> Any:
        env = real_open(path, *given, **settings)
        return _Environment(env, "log") if Path(path).name == "log" else env

    def connected(database: str, **settings: Any) -> Any:
        if "/index/" in database:
            settings["factory"] = _Connection
        return real_connect(database, **settings)

    def fsync(descriptor: int) -> None:
        if "signals.jsonl" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            _check("jsonl")
        real_fsync(descriptor)

    libraries.open = opened
    databases.connect = connected
    os.fsync = fsync


def _plant_in_families() -> None:
    import_module(
        "collector.base.telemetry"
    )  # its counters are prometheus_client's, with an `inc` of their own
    kinds: list[Any] = [Counter]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if "inc" in vars(kind):
            _plant_in_counter(kind)
    gauges: Any = Gauge
    real_set = gauges.set

    def set_to(gauge: Any, value: float) -> None:
        if gauge._name in _FAMILIES:
            _check(_FAMILIES[gauge._name])
        real_set(gauge, value)

    gauges.set = set_to


def _plant_in_counter(counters: Any) -> None:
    real_inc = counters.inc

    def inc(counter: Any, *given: Any, **settings: Any) -> None:
        if counter._name in _FAMILIES:
            _check(_FAMILIES[counter._name])
        real_inc(counter, *given, **settings)

    counters.inc = inc


def _plant_in_connections() -> None:
    calls: Any = import_module("grpc.aio._channel").UnaryUnaryMultiCallable
    loops: Any = asyncio
    real_call, real_exec = calls.__call__, loops.create_subprocess_exec

    def call(self: Any, *given: Any, **settings: Any) -> Any:
        _check("otlp" if b"LogsService" in self._method else "forward")
        return real_call(self, *given, **settings)

    async def create(*command: Any, **settings: Any) -> Any:
        if "collector.judging.child" in command:
            _check("judge")
        return await real_exec(*command, **settings)

    calls.__call__ = call
    loops.create_subprocess_exec = create


if __name__ == "__main__":
    plant()
    from collector.commands.cli import main

    sys.exit(main())
