"""An exporter that never gives up: every request is sent again until it is acknowledged."""

import threading
import time
from collections.abc import Callable, Sequence

import grpc

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Sender(threading.Thread):
    """Sends requests in order from its own thread, asking `target` before each try (ports change at a restart)."""

    def __init__(
        self, requests: Sequence[bytes], target: Callable[[], str], *, pause: float = 0.0
    ) -> None:
        super().__init__(daemon=True)
        self._requests = requests
        self._target = target
        self._pause = pause
        self.acknowledged = 0
        self.tries = 0
        self.give_up = threading.Event()

    def run(self) -> None:
        """Until all are acknowledged."""
        for request in self._requests:
            while not self._send(request):
                if self.give_up.is_set():
                    return
                time.sleep(0.05)
            self.acknowledged += 1
            time.sleep(self._pause)

    def _send(self, request: bytes) -> bool:
        self.tries += 1
        with grpc.insecure_channel(self._target()) as channel:
            call = channel.unary_unary(
                EXPORT, request_serializer=bytes, response_deserializer=bytes
            )
            try:
                call(request, timeout=5)
            except grpc.RpcError:
                return False
        return True


def send(target: str, *requests: bytes, method: str = EXPORT) -> None:
    """Each request once, spans unless another method of gRPC takes them.

    Raises:
        grpc.RpcError: the first that is not accepted.
    """
    with grpc.insecure_channel(target) as channel:
        export = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
        for request in requests:
            export(request, timeout=10)
