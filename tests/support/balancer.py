"""What a Service of Kubernetes does for its pods, on loopback: one address, connections spread over what is ready."""

import itertools
import socket
import threading
import time
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

from tests.support.gate import pass_on
from tests.support.service import Service

PERIOD = 0.2
"""Seconds between two looks at `/readyz`: how late the address learns of a stop."""


class Balancer:
    """Takes connections for a set of processes, new ones only to those whose `/readyz` was 200 at the last look.

    A connection stays with its process until one side closes it. Never asks whether a port is open before it connects.
    """

    def __init__(self) -> None:
        self.members: list[Service] = []
        """Those that exist; they may be stopping."""
        self.failed: list[str] = []
        """Connections that found no open port, and those that came while no member was ready."""
        self._ready: list[Service] = []
        self._turn = itertools.count()
        self._over = threading.Event()
        self._listeners: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._look, daemon=True)]
        self.grpc = self._listen(lambda service: service.grpc)
        self.http = self._listen(lambda service: urlsplit(service.http).netloc)

    def __enter__(self) -> Self:
        """Serve."""
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the address."""
        self._over.set()
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def await_ready(self, count: int, timeout: float = 60.0) -> None:
        """Return when so many members are ready."""
        deadline = time.monotonic() + timeout
        while len(self._ready) < count:
            assert time.monotonic() < deadline, f"{len(self._ready)} of {count} are ready"
            time.sleep(0.05)

    def _look(self) -> None:
        while not self._over.wait(PERIOD):
            self._ready = [each for each in tuple(self.members) if _is_ready(each)]

    def _listen(self, target: Callable[[Service], str]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        self._threads.append(
            threading.Thread(target=self._accept, args=(listener, target), daemon=True)
        )
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def _accept(self, listener: socket.socket, target: Callable[[Service], str]) -> None:
        while not self._over.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, target), daemon=True).start()

    def _serve(self, client: socket.socket, target: Callable[[Service], str]) -> None:
        with client:
            ready = self._ready
            if not ready:
                self.failed.append("no member was ready")
                return
            chosen = ready[next(self._turn) % len(ready)]
            host, _, port = target(chosen).rpartition(":")
            try:
                server = socket.create_connection((host, int(port)), timeout=10)
            except OSError as error:
                self.failed.append(f"{chosen.data.name}: {error}")
                return
            with server:
                pass_on(client, server)


def _is_ready(service: Service) -> bool:
    try:
        return service.status("/readyz") == 200
    except OSError:
        return False
