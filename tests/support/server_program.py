"""A server on loopback that is a program of its own: started, asked over HTTP, and ended."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx


def ask(
    method: str, url: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **how: Any
) -> Any:
    """The answer's JSON, or None when it is empty; bytes are sent as OTLP.

    Raises:
        AssertionError: it is not a yes.
    """
    if isinstance(body, bytes):
        how |= {"content": body}
        headers = {"content-type": "application/x-protobuf", **(headers or {})}
    elif body is not None:
        how |= {"json": body}
    # Hundreds of traces in one request took more than 30 seconds on a busy machine.
    answer = httpx.request(method, url, headers=headers, timeout=120, verify=False, **how)
    assert answer.is_success, f"{method} {url}: {answer.status_code} {answer.content[:500]!r}"
    return answer.json() if answer.content and not isinstance(body, bytes) else None


class ServerProgram:
    """What it says is in the file `log`; it serves once `ready`, a path, answers."""

    def __init__(self, url: str, ready: str, log: Path) -> None:
        self.url = url
        self._ready = ready
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def begin(
        self,
        *command: str | Path,
        within: float = 120.0,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Self:
        """Return when it serves."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=cwd,
                env=env,
            )
        try:
            self.wait_for("it serves", self._serves, within)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it and its children at once."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def wait_for(self, what: str, holds: Callable[[], Any], timeout: float) -> Any:
        """Poll until `holds()` is truthy; its value."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with suppress(
                httpx.HTTPError, OSError
            ):  # it is starting, or too busy to answer in time
                if value := holds():
                    return value
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(0.2)
        tail = self._log.read_text(errors="replace")[-3000:]
        raise AssertionError(f"{what}: not within {timeout:g} s\n{tail}")

    def _serves(self) -> bool:
        status = httpx.get(f"{self.url}{self._ready}", timeout=5, verify=False).status_code
        return status in (200, 405)  # 405: it takes another method
