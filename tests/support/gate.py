"""A way to a server on loopback that a test shuts and opens: to a client the server goes away and comes back."""

import selectors
import socket
import socketserver
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class _Ways(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


class Gate:
    """Forwards connections; the address stays the same. It begins shut."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._ways: _Ways | None = None
        self._port = 0
        self._open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """From now on it is there."""
        if self._ways is None:
            self._ways = _Ways(("127.0.0.1", self._port), self._handler())
            self._port = self._ways.server_address[1]
            threading.Thread(target=self._ways.serve_forever, args=(0.01,), daemon=True).start()

    def shut(self) -> None:
        """From now on connections are refused, and those that were open are cut."""
        ways, self._ways = self._ways, None
        if ways is not None:
            ways.shutdown()
            ways.socket.close()
            for each in tuple(self._open):
                _cut(each)
            ways.server_close()  # waits for their threads

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        gate = self

        class Way(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with (
                    suppress(OSError),
                    socket.create_connection(gate._target, timeout=10) as server,
                ):
                    pair = {self.request, server}
                    gate._open |= pair
                    if gate._ways is not None:
                        pass_on(self.request, server)
                    gate._open -= pair

        return Way


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):  # it may have ended by itself
        connection.shutdown(socket.SHUT_RDWR)


def pass_on(client: socket.socket, server: socket.socket) -> None:
    """Bytes both ways until a side has ended; then both are closed, as a connection through the kernel would be."""
    with selectors.DefaultSelector() as ways:
        ways.register(client, selectors.EVENT_READ, server)
        ways.register(server, selectors.EVENT_READ, client)
        while True:
            for key, _ in ways.select(timeout=60):
                source, sink = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                try:
                    piece = source.recv(1 << 16)
                    if not piece:
                        return
                    sink.sendall(piece)
                except OSError:
                    return
