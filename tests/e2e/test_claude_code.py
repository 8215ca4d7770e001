"""The real Claude Code, its log exporter pointed at the real process; only the model is a script on loopback."""

import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.anthropic_server import AnthropicServer
from tests.support.node_packages import installed
from tests.support.scripted_model import ANSWER
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
QUICK = ("windows.trace.root_grace=1s", "windows.trace.idle=8s", "windows.session.idle=10s")
COMMAND = "cat notes.txt"


@pytest.fixture(scope="module")
def claude() -> Path:
    """The program, without what its install script would do."""
    folder = installed("claude_code", "the real Claude Code")
    found = sorted(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    assert found, "npm installed no program for this machine"
    return found[0]


def prompt(
    claude: Path, words: str, *, folder: Path, model: str, service: Service, resume: bool = False
) -> str:
    """What it prints to one prompt."""
    address = urlsplit(service.http)
    ended = subprocess.run(
        [
            str(claude),
            *(("--continue",) if resume else ()),
            "-p",
            words,
            "--allowedTools",
            f"Bash({COMMAND})",
        ],
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent / "home"),
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "sk-ant-none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address.netloc}",
            "OTEL_LOGS_EXPORT_INTERVAL": "500",
            "OTEL_LOG_USER_PROMPTS": "1",
            "OTEL_LOG_TOOL_DETAILS": "1",
            "OTEL_LOG_ASSISTANT_RESPONSES": "1",
        },
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


def test_its_turns_are_traces_of_one_session(claude: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    (folder / "notes.txt").write_text("release 4.2\n")
    asked = ("Which release is this?", "Are you sure?")
    with (
        AnthropicServer(COMMAND) as model,
        Service(tmp_path / "data", *QUICK) as service,
    ):
        for number, words in enumerate(asked):
            said = prompt(
                claude,
                words,
                folder=folder,
                model=model.url,
                service=service,
                resume=number > 0,
            )
            assert said == ANSWER
        service.wait_for("both turns are scored", lambda: len(traces(service)) == 2, timeout=120)
        found = [service.shown(each)["trace"] for each in traces(service)]

    found.sort(key=lambda each: each["start"])
    assert [each["input"] for each in found] == list(asked)
    assert len({each["session_id"] for each in found}) == 1
    for trace in found:
        (call,) = trace["tool_calls"]
        assert (call["name"], call["arguments"]["command"]) == ("Bash", COMMAND)
        assert (call["error"], call["rejected"]) == (None, None)
        assert trace["tokens"] == {"input": 200, "output": 40, "cached": None, "reasoning": None}


def traces(service: Service) -> list[str]:
    """Ids of traces with signals of their own."""
    signals: list[dict[str, Any]] = service.signals()
    return sorted({each["trace_id"] for each in signals if each["scope"] == "trace"})
