"""The workers and judges of a forked service, forked as well.

    service -> its helper, forked before anything runs -> (one that ends at once) -> child, whose parent is the service

The service asks its helper in place of `asyncio.create_subprocess_exec`, and adopts the child as a subreaper: it waits
for it, kills it and sees its exit code as ever.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

HELPER = "warm-helper"
"""The name of the helper's process: it is none of the service's children to a test that counts them."""
MODULES: Mapping[str, str] = {
    "collector.reading.worker": "reading.worker",
    "collector.judging.child": "judging.child",
}
"""Those that are forked, and the names of their processes."""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_MESSAGE = 1 << 17
"""Bytes of a request: the environment, mostly."""
_ASKED_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ForkedChild:
    """What `collector.base.child.Child` uses of asyncio's process. A child ends when its socket is closed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()
        self._watch = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._watch, self._end)

    async def wait(self) -> int | None:
        await self._ended.wait()
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def _end(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        asyncio.get_running_loop().remove_reader(self._watch)
        os.close(self._watch)
        self._ended.set()


def lend() -> None:
    """From now on this process, which has run nothing yet, gets its children from a helper."""
    parent = os.getpid()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MESSAGE)
    if os.fork() == 0:
        ours.close()
        module = _serve(theirs, parent)
        sys.exit(import_module(module).main())
    theirs.close()
    by_exec = asyncio.create_subprocess_exec

    async def started(program: str, *arguments: Any, **given: Any) -> Any:
        if program != sys.executable or len(arguments) != 4 or arguments[2] not in MODULES:
            return await by_exec(program, *arguments, **given)
        os.umask(mask := os.umask(0o077))
        said = json.dumps([arguments[2], dict(os.environ), mask]).encode()
        prints = given.get("stderr")
        files = [int(arguments[3]), *([] if prints is None else [prints])]
        socket.send_fds(ours, [said], files)
        return ForkedChild(int(ours.recv(64)))

    asyncio.create_subprocess_exec = started


def _serve(link: socket.socket, parent: int) -> str:
    """Return in each child, with its module; end with the service."""
    for number in _ASKED_TO_END:
        signal.signal(number, signal.SIG_IGN)
    _call(HELPER)
    while True:
        with contextlib.suppress(ConnectionResetError):
            said, files, _, _ = socket.recv_fds(link, _MESSAGE, 2)
            if not said:
                os._exit(0)
            if between := os.fork():
                os.waitpid(between, 0)
                for each in files:
                    os.close(each)
                continue
            if os.fork():
                os._exit(0)
            if len(files) > 1:
                os.dup2(files[1], 2)
                os.close(files[1])
            return _become(link, parent, json.loads(said), files[0])


def _become(
    link: socket.socket, parent: int, said: tuple[str, dict[str, str], int], file: int
) -> str:
    module, environment, mask = said
    os.umask(mask)
    while os.getppid() != parent:  # the one between has not ended yet
        time.sleep(0.0005)
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ASKED_TO_END[1:]:
        signal.signal(number, signal.SIG_DFL)
    _call(MODULES[module])
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, str(file)]
    link.send(str(os.getpid()).encode())
    link.close()
    return module


def _call(name: str) -> None:
    Path("/proc/self/comm").write_text(name)
