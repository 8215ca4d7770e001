"""Which evaluator of a third party runs in the judge process now, for whoever has to say why the process ended."""

import asyncio
import contextlib
import faulthandler
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

from collector.base.plugins import end_if_forked
from collector.judging.port import RUNNING
from evaluators.judging.calls import JudgeHandle
from evaluators.plan import Configured

JOB: ContextVar[int] = ContextVar("job")  # that the task works on
_SIZE = 512  # bytes of the file: a job, a time, a name of at most 200 characters
_LOOKS = 20  # in the time of an evaluator: how often it is seen whether it waits for the judge or for itself


class Watchdog:
    """Notes in a file, which outlives the process, what runs; a timer in C ends the process where it takes too long.

    The timer needs no lock of the interpreter, which an evaluator that hangs may hold.
    """

    def __init__(self, folder: Path, limits: Mapping[str, float]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / RUNNING, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._limits = limits
        self._pid = os.getpid()
        self.late: dict[int, list[str]] = {}
        """By job, evaluators that waited for something else than the judge until their time was over."""

    def watched(self, configured: Configured) -> Configured:
        """The evaluator, whose every step is noted."""
        name, function = configured.spec.name, configured.spec.function

        @wraps(function)
        def run(*subject: Any, **arguments: Any) -> Any:
            with self._noted(name):
                found = function(*subject, **arguments)
            return self._timed(name, found, arguments) if inspect.isawaitable(found) else found

        return replace(configured, spec=replace(configured.spec, function=run))

    @contextlib.contextmanager
    def _noted(self, name: str) -> Generator[None]:
        self._note(f"{JOB.get()} {time.monotonic()} {name}")
        faulthandler.dump_traceback_later(self._limits[name], exit=True)
        try:
            yield
        finally:
            end_if_forked(self._pid)
            faulthandler.cancel_dump_traceback_later()
            self._note("")

    def _note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk: then it can't be said who it was
            os.pwrite(self._file, text.encode()[:_SIZE].ljust(_SIZE, b"\0"), 0)

    async def _timed(self, name: str, found: Awaitable[Any], arguments: Mapping[str, Any]) -> Any:
        """Its time does not go on while it waits for an answer of the judge."""
        asking = [each for each in arguments.values() if isinstance(each, JudgeHandle)]
        left = limit = self._limits[name]
        task = asyncio.ensure_future(_Steps(partial(self._noted, name), found))
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=limit / _LOOKS)
                left -= 0 if any(each.waits for each in asking) else limit / _LOOKS
                if left <= 0 and not task.done():
                    self.late.setdefault(JOB.get(), []).append(name)
                    raise TimeoutError(f"no answer within {limit:g} s")
            return task.result()
        finally:
            task.cancel()


@dataclass(frozen=True, slots=True)
class _Steps:
    """Awaits; `noted` is entered around what runs between two waits."""

    noted: Callable[[], contextlib.AbstractContextManager[None]]
    found: Awaitable[Any]

    def __await__(self) -> Generator[Any, None, Any]:
        steps = self.found.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            with self.noted():
                try:
                    waits_for = step()
                except StopIteration as end:
                    return end.value
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is the evaluator's to see
                step = partial(steps.throw, error)
            else:
                step = partial(next, steps)
