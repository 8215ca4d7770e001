"""HTTP/2 by hand, to leave gRPC messages unfinished: no client library does that."""

import socket
import struct
import time
from typing import Self

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_HEADERS, END_STREAM, ACK = 4, 1, 1
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WINDOW = 65535
_CHUNK = 16384


class RawGrpc:
    """One connection. It sends what the other side's windows let it and reads what comes meanwhile."""

    def __init__(self, target: str, *, patience: float = 10.0) -> None:
        host, _, port = target.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._streams: dict[int, int] = {}
        self._window = _WINDOW
        self._initial = _WINDOW
        self.settings: dict[int, int] = {}
        """What the other side announced."""
        self.ended: set[int] = set()
        """Streams that the other side is done with."""
        self.closed = False
        self._socket.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
        deadline = time.monotonic() + patience
        while not self.settings and not self.closed and time.monotonic() < deadline:
            self.read(0.2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def open(self, size: int, *headers: tuple[str, str], path: str = EXPORT) -> int:
        """Begin a call whose message is announced with `size` bytes; the number of its stream."""
        stream = 1 + 2 * len(self._streams)
        self._streams[stream] = self._initial
        fields = (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *headers,
        )
        block = b"".join(b"\0" + text(name) + text(value) for name, value in fields)
        self._send(frame(HEADERS, END_HEADERS, stream, block))
        self.push(stream, struct.pack(">BI", 0, size), within=5.0)
        return stream

    def push(self, stream: int, data: bytes, *, within: float) -> int:
        """Send what the windows take within so many seconds; how many bytes that were."""
        sent = 0
        deadline = time.monotonic() + within
        while sent < len(data) and not self.closed and stream not in self.ended:
            room = min(self._window, self._streams[stream], len(data) - sent, _CHUNK)
            if room <= 0:
                if time.monotonic() > deadline:
                    break
                self.read(0.05)
                continue
            self._send(frame(DATA, 0, stream, data[sent : sent + room]))
            self._window -= room
            self._streams[stream] -= room
            sent += room
            if sent % (1 << 20) < _CHUNK:
                self.read(0.0)
        return sent

    def read(self, within: float) -> None:
        """Take in whatever comes within so many seconds."""
        self._socket.settimeout(max(within, 0.001))
        try:
            data = self._socket.recv(1 << 16)
            self.closed = self.closed or not data
        except TimeoutError:
            return
        except OSError:
            self.closed = True
            return
        finally:
            self._socket.settimeout(10.0)
        self._received += data
        while len(self._received) >= 9:
            size = int.from_bytes(self._received[:3], "big")
            if len(self._received) < 9 + size:
                return
            kind, flags = self._received[3], self._received[4]
            stream = int.from_bytes(self._received[5:9], "big") & 0x7FFFFFFF
            payload = self._received[9 : 9 + size]
            self._received = self._received[9 + size :]
            self._take(kind, flags, stream, payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            self._configure(payload)
        elif kind == PING and not flags & ACK:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            grown = int.from_bytes(payload, "big") & 0x7FFFFFFF
            if stream:
                self._streams[stream] = self._streams.get(stream, 0) + grown
            else:
                self._window += grown
        elif kind == RESET or (kind in (DATA, HEADERS) and flags & 1):
            self.ended.add(stream)
        elif kind == GOAWAY:
            self.closed = True

    def _configure(self, payload: bytes) -> None:
        for at in range(0, len(payload), 6):
            key, value = struct.unpack_from(">HI", payload, at)
            self.settings[key] = value
        initial = self.settings.get(INITIAL_WINDOW_SIZE, self._initial)
        for stream in self._streams:
            self._streams[stream] += initial - self._initial
        self._initial = initial
        self._send(frame(SETTINGS, ACK, 0, b""))

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            self.closed = True


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def text(text: str) -> bytes:
    """A string of HPACK without Huffman's code; below 127 bytes."""
    return bytes((len(text),)) + text.encode()
