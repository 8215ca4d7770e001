"""A way to a server on loopback that a test shuts and opens: to a client the server goes away and comes back."""

import selectors
import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Gate:
    """Forwards connections; the address stays the same. It begins shut."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._listener: socket.socket | None = None
        self._port = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """From now on it is there."""
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self._port))
            self._port = self._listener.getsockname()[1]
            self._begin(self._accept, self._listener)

    def shut(self) -> None:
        """From now on connections are refused, and those that were open are cut."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for each in tuple(self._open):
            _cut(each)
        for each in self._threads:
            each.join(10)
        self._threads.clear()

    def _begin(self, target: object, *arguments: socket.socket) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                return
            with server:
                pair = {client, server}
                self._open |= pair
                if self._listener is not None:
                    pass_on(client, server)
                self._open -= pair


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
