"""The data folder is the user's alone, and what an agent says commands no terminal, in the log and the signals."""

import os
import unicodedata
from pathlib import Path

import pytest

from tests.support.agents import request
from tests.support.asking import span
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

ORDERS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x08\u202egnp.exe\u2028\x00\r\x85end"
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def commanding(text: str) -> set[str]:
    """Control characters and what turns a line around, line feeds and tabs aside."""
    kinds = ("Cc", "Zl", "Zp")
    found = {each for each in text if unicodedata.category(each) in kinds or each in TURNING}
    return found - {"\n", "\t"}


def ordering() -> bytes:
    root = span("s" + ORDERS, "Where?" + ORDERS, "Here" + ORDERS)
    for each in root.attributes:
        if each.key == "gen_ai.agent.name":
            each.value.string_value = "desk" + ORDERS
    tool = span("s" + ORDERS, "", child="look" + ORDERS)
    tool.status.code = 2  # type: ignore[assignment] -- the enum's number
    tool.status.message = "failed" + ORDERS
    return request("bot" + ORDERS, [tool, root])


def test_the_data_folder_is_the_users_alone_and_commands_no_terminal(tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = ("windows.trace.root_grace=100ms", "embedder.kind=none")
    before = os.umask(0o022)
    try:
        with OpenAiServer() as server, Service(data, *settings, *server.settings) as service:
            send(service.grpc, ordering())
            service.wait_for("it is judged", lambda: server.answered, timeout=40)
            service.wait_for("it is written", service.signals, timeout=20)
    finally:
        os.umask(before)

    modes = {each: each.stat().st_mode & 0o777 for each in (data, *data.rglob("*"))}
    wanted = {each: 0o700 if each.is_dir() else 0o600 for each in modes}
    assert modes == wanted
    assert commanding(service.output.read_text(errors="replace")) == set()
    assert commanding((data / "signals.jsonl").read_text()) == set()
