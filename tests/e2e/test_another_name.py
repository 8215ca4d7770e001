"""A TLS server with a certificate that is trusted and names another host: said clearly, and tried again."""

import json
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import certificates
from tests.support.asking import asked
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
SAYS = {
    "forward": "The forward backend takes nothing now",
    "otlp": "Sink `otlp` fails; its signals wait in the log",
    "push": "metrics.otlp.endpoint does not take our metrics",
}
"""The line of each, which also names the reason."""


class Connections(list[str]):
    """One entry for each connection that was tried."""

    url = ""


@contextmanager
def server(pair: certificates.Pair) -> Generator[Connections]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    tried = Connections()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tried.url = f"https://127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            with suppress(OSError):  # the listener is closed
                while True:
                    connection, _ = listener.accept()
                    tried.append("")
                    connection.settimeout(5)
                    with suppress(OSError), context.wrap_socket(connection, server_side=True) as it:
                        it.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield tried
        listener.shutdown(socket.SHUT_RDWR)


def test_it_is_said_and_tried_again(tmp_path: Path) -> None:
    ca, pair = certificates.of_another_name(tmp_path)
    trusted = {"SSL_CERT_FILE": str(ca.cert), "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(ca.cert)}
    with ExitStack() as stack:
        tried = {name: stack.enter_context(server(pair)) for name in (*SAYS, "judge")}

        def target(name: str, **more: str) -> str:
            return json.dumps({"endpoint": tried[name].url, **more})

        service = stack.enter_context(
            Service(
                tmp_path / "data",
                f"forward={target('forward')}",
                f"sinks.otlp={target('otlp', protocol='http')}",
                f"metrics.otlp={target('push', protocol='http', interval='1s')}",
                "judge.model=openai/test",
                f"judge.base_url={tried['judge'].url}/v1",
                "judge.api_key=none",
                "embedder.kind=none",
                "windows.trace.root_grace=300ms",
                environment=trusted,
                measured=True,
            )
        )
        send(service.grpc, asked("s1", "hello"))
        service.wait_for("two tries of each", lambda: all(len(tried[name]) > 1 for name in SAYS))
        service.wait_for("the judge's words", lambda: judged(service))
        (failed,) = judged(service)
        assert failed["message"] == "the provider's certificate is not trusted"
        assert tried["judge"]
        assert service.stop() == 0
    lines = service.output.read_text().splitlines()
    for name, said in SAYS.items():
        (line,) = [each for each in lines if said in each]
        assert "mismatch" in line or "Hostname Verification" in line, name


def judged(service: Service) -> list[dict[str, Any]]:
    """The error of the judge."""
    return [
        each["error"]
        for each in service.signals()
        if each["evaluator"] == "task_completion" and each["method"] == "llm_judge"
    ]
