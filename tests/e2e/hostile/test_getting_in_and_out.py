"""A terminal gets no orders out of a trace, the data folder is the user's alone."""

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
from tests.support.openai_server import OpenAiServer
from tests.support.recordings import write
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

SOON = ("windows.trace.root_grace=100ms", "embedder.kind=none")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("open") / "data", *SOON) as running:
        yield running


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


# --- a reader that hangs up ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [b"content-length: 100000", b"transfer-encoding: chunked"])
def test_a_reader_that_hangs_up_is_no_traceback(service: Service, length: bytes) -> None:
    before = len(service.output.read_text())
    where = urlsplit(service.admin)
    for begun in (b"", b"5\r\nab", b"x" * 5000):
        with socket.create_connection((where.hostname or "", where.port or 0), 10) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            head = b"GET /api/v1/signals/stream HTTP/1.1\r\nhost: localhost\r\n%s\r\n\r\n"
            sock.sendall(head % length + begun)
            time.sleep(0.1)
    send(service.grpc, asked("after", "Where?"))
    service.shown(trace_id("after"))

    assert "Traceback" not in service.output.read_text()[before:]
