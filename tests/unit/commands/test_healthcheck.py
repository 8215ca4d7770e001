"""What the image's health check asks, and what it says."""

import http.server
import threading
from collections.abc import Iterator, Mapping

import pytest

from collector.commands import healthcheck


class Answer(http.server.BaseHTTPRequestHandler):
    """200 for /healthz until the test says otherwise."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        return


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
    Answer.status = 200


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ("127.0.0.1", 4390)),
        ({"SPANWISE_ADMIN__HOST": "0.0.0.0", "SPANWISE_ADMIN__PORT": "80"}, ("127.0.0.1", 80)),
        ({"SPANWISE_ADMIN__HOST": "::"}, ("::1", 4390)),
        ({"SPANWISE_ADMIN__HOST": "10.0.0.7", "SPANWISE_ADMIN__PORT": ""}, ("10.0.0.7", 4390)),
    ],
)
def test_it_asks_where_the_admin_port_is(
    environment: Mapping[str, str], expected: tuple[str, int]
) -> None:
    assert healthcheck.address(environment) == expected


def test_a_service_that_answers_lives(port: int) -> None:
    assert healthcheck.complaint({"SPANWISE_ADMIN__PORT": str(port)}) is None


def test_another_answer_is_reported(port: int) -> None:
    Answer.status = 503

    assert healthcheck.complaint({"SPANWISE_ADMIN__PORT": str(port)}) == "/healthz answers 503"


@pytest.mark.parametrize("port", ["1", "admin"])
def test_no_answer_is_one_line_and_exit_code_1(
    port: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANWISE_ADMIN__PORT", port)

    assert healthcheck.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("spanwise: no answer: ")
