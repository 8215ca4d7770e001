"""A web page cannot post spans, a terminal gets no orders out of a trace, the data folder is the user's alone."""

import os
import socket
import struct
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.command import spanwise
from tests.support.hostile import post
from tests.support.openai_server import OpenAiServer
from tests.support.recordings import write
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

SOON = ("windows.trace.root_grace=100ms", "embedder.kind=none")
TOKEN = "correct-horse"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("open") / "data", *SOON) as running:
        yield running


# --- a foreign origin -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example:4318",
    ],
)
def test_a_foreign_origin_is_refused_while_no_token_is_set(service: Service, origin: str) -> None:
    code, _ = post(service.http, asked("s", "Where?"), {"origin": origin})

    assert code == 403


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:1"]
)
def test_a_page_of_this_machine_may_send(service: Service, origin: str) -> None:
    assert post(service.http, asked("s", "Where?"), {"origin": origin})[0] == 200


def test_a_foreign_name_for_this_host_is_refused_while_no_token_is_set(service: Service) -> None:
    """A name that its owner points at 127.0.0.1."""
    assert post(service.http, asked("s", "Where?"), {"host": "evil.example"})[0] == 403


def test_with_a_token_the_origin_does_not_matter(tmp_path: Path) -> None:
    with Service(tmp_path / "data", f"receiver.bearer_tokens=[{TOKEN}]") as guarded:
        headers = {"origin": "https://app.example", "authorization": f"Bearer {TOKEN}"}

        assert post(guarded.http, asked("s", "Where?"), headers)[0] == 200


# --- characters that command a terminal -----------------------------------------------------------------------------

ORDERS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x08\u202egnp.exe\u2028\x00\r\x85end"


_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def unprintable(text: str) -> set[str]:
    """Control characters and what turns a line around, line feeds and tabs aside."""
    return {char for char in text if char not in "\n\t" and _commands(char)}


def _commands(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp") or char in _TURNING


def ordering() -> bytes:
    root = span("s" + ORDERS, "Where?" + ORDERS, "Here" + ORDERS)
    for each in root.attributes:
        if each.key == "gen_ai.agent.name":
            each.value.string_value = "desk" + ORDERS
    tool = span("s" + ORDERS, "", child="look" + ORDERS)
    tool.status.code = 2  # type: ignore[assignment] -- the enum's number
    tool.status.message = "failed" + ORDERS
    return request("bot" + ORDERS, [tool, root])


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate",),
        ("evaluate", "--format", "jsonl"),
        ("inspect",),
        ("inspect", "--format", "jsonl"),
        ("doctor",),
    ],
)
def test_what_is_printed_commands_no_terminal(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    recording = tmp_path / "orders.otlp"
    write(recording, [ordering().replace(b"\x00", b"\x01")])
    command, *rest = arguments

    ended = spanwise(command, str(recording), *rest)

    assert unprintable(ended.out) == set()
    assert unprintable(ended.err) == set()


def test_what_is_logged_and_written_commands_no_terminal(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SOON) as running:
        send(running.grpc, ordering())
        running.wait_for("it is scored", running.signals, timeout=20)

    assert unprintable(running.output.read_text(errors="replace")) == set()
    assert unprintable((tmp_path / "data" / "signals.jsonl").read_text()) == set()


# --- the data folder ------------------------------------------------------------------------------------------------


def test_the_data_folder_is_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with (
            OpenAiServer() as server,
            Service(tmp_path / "data", *SOON, *server.settings) as running,
        ):
            send(running.grpc, asked("s", "Where?"))
            running.wait_for("it is judged", lambda: server.answered, timeout=40)
            running.wait_for("it is written", running.signals, timeout=20)
    finally:
        os.umask(before)

    data = tmp_path / "data"
    modes = {each: each.stat().st_mode & 0o777 for each in (data, *data.rglob("*"))}
    wrong = {
        str(each.relative_to(tmp_path)): oct(mode)
        for each, mode in modes.items()
        if mode != (0o700 if each.is_dir() else 0o600)
    }
    assert wrong == {}


# --- requests that are none -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?id=", "?id=zz", "?id=" + "0" * 4000, "?id=%00"])
@pytest.mark.parametrize("path", ["/trace", "/session"])
def test_a_view_of_nothing_is_an_error_of_the_asker(
    service: Service, path: str, query: str
) -> None:
    code = service.status(path + query)

    assert code in ((400,) if query in ("", "?id=") and path == "/trace" else (400, 404, 414, 431))


@pytest.mark.parametrize("port", ["http", "admin"])
@pytest.mark.parametrize("length", [b"content-length: 100000", b"transfer-encoding: chunked"])
def test_a_sender_that_hangs_up_is_no_traceback(service: Service, port: str, length: bytes) -> None:
    before = len(service.output.read_text())
    where = urlsplit(service.http if port == "http" else service.admin)
    path = b"/v1/traces" if port == "http" else b"/api/v1/signals/stream"
    method = b"POST" if port == "http" else b"GET"
    for begun in (b"", b"5\r\nab", b"x" * 5000):
        with socket.create_connection((where.hostname or "", where.port or 0), 10) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            head = b"%s %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n%s\r\n\r\n"
            sock.sendall(head % (method, path, length) + begun)
            time.sleep(0.1)
    send(service.grpc, asked("after", "Where?"))
    service.shown(trace_id("after"))

    assert "Traceback" not in service.output.read_text()[before:]
