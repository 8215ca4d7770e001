"""Export requests to the wrong door: answered with the right one and counted; the first of each kind is logged."""

import logging
from collections.abc import Callable
from typing import Literal

from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE
from collector.receiver.answers import Code, ReceiverReply
from collector.receiver.families import ReceiverFamilies

Door = Literal["path", "method", "media_type", "http2"]
"""What was wrong: nothing is served there, or not so; or it was gRPC on the HTTP port."""
_NO_PATH = ReceiverReply(
    code=Code.NOT_FOUND,
    message=f"no such path: send traces to {TRACE_SERVICE.path} and logs to {LOGS_SERVICE.path}"
    " (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is taken with its path, OTEL_EXPORTER_OTLP_ENDPOINT without)",
    http=404,
)
_NO_POST = ReceiverReply(code=Code.UNIMPLEMENTED, message="only POST is served here", http=405)
_UNSUPPORTED = ReceiverReply(
    code=Code.INVALID_ARGUMENT,
    message="send application/x-protobuf or application/json,"
    " plain or with Content-Encoding gzip, deflate or zstd",
    http=415,
)
_SHOWN = 100
"""Characters of a stranger's path or method that a log line shows."""
_log = logging.getLogger(__name__)


class WrongDoor:
    """The doors of the HTTP port. `families`: where they are counted."""

    def __init__(self, families: ReceiverFamilies, *, grpc_port: Callable[[], int]) -> None:
        self._requests = families.requests
        self._misdirected = families.misdirected
        self._grpc_port = grpc_port
        self._said: set[Door] = set()

    def no_path(self, path: str) -> ReceiverReply:
        return self._counted("path", _NO_PATH, f"a request for {path[:_SHOWN]!r}")

    def no_post(self, method: str) -> ReceiverReply:
        return self._counted("method", _NO_POST, f"a request {method[:_SHOWN]!r}")

    def unsupported(self, media: str, encoding: str) -> ReceiverReply:
        shown = f"a body of type {media[:_SHOWN]!r}, encoding {encoding[:_SHOWN]!r}"
        return self._counted("media_type", _UNSUPPORTED, shown)

    def http2(self) -> str:
        """The answer to a connection that begins as HTTP/2 does."""
        text = (
            f"this is Spanwise's HTTP port; gRPC is served on port {self._grpc_port()}:"
            " set the endpoint, or OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
        )
        return self._counted(
            "http2", ReceiverReply(code=Code.UNIMPLEMENTED, message=text), "gRPC (HTTP/2)"
        ).message

    def _counted(self, door: Door, answer: ReceiverReply, what: str) -> ReceiverReply:
        self._requests.labels("http", answer.code.name).inc()
        self._misdirected.labels("http", door).inc()
        if door not in self._said:
            self._said.add(door)
            _log.warning("The HTTP port got %s. It was answered: %s", what, answer.message)
        return answer
