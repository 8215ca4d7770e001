"""The real Gemini CLI, its log events and spans pointed at the real process; only the model is a script on loopback."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.gemini_server import GeminiServer
from tests.support.node_packages import installed
from tests.support.scripted_model import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
QUICK = ("windows.trace.root_grace=1s", "windows.trace.idle=8s", "windows.session.idle=10s")
COMMAND = "cat notes.txt"


@pytest.fixture(scope="module")
def gemini() -> Path:
    """The program, in one file for node."""
    folder = installed("gemini_cli", "the real Gemini CLI")
    return folder / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"


def prompt(gemini: Path, words: str, *, folder: Path, model: str, resume: bool) -> str:
    """What it prints to one prompt."""
    ended = subprocess.run(
        [
            *("node", str(gemini), "--model", "gemini-2.5-pro", "--approval-mode", "yolo"),
            *(("--resume", "latest") if resume else ()),
            *("--prompt", words),
        ],
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent / "home"),
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": model,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


def test_its_turns_are_traces_of_one_session(gemini: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    (home / ".gemini").mkdir(parents=True)
    (folder / "notes.txt").write_text("release 4.2\n")
    asked = ("Which release is this?", "Are you sure?")
    with (
        GeminiServer(COMMAND) as model,
        Service(tmp_path / "data", *QUICK) as service,
    ):
        settings = home / ".gemini" / "settings.json"
        settings.write_text(json.dumps(_settings(f"http://{service.grpc}")))
        for number, words in enumerate(asked):
            said = prompt(gemini, words, folder=folder, model=model.url, resume=number > 0)
            assert said == ANSWER
        service.wait_for("both turns are scored", lambda: len(traces(service)) == 2, timeout=60)
        found = [service.shown(each)["trace"] for each in traces(service)]

    found.sort(key=lambda each: each["start"])
    assert [(each["input"], each["output"]) for each in found] == [(one, ANSWER) for one in asked]
    assert len({each["session_id"] for each in found}) == 1
    for trace in found:
        (call,) = trace["tool_calls"]
        assert (call["name"], call["arguments"]["command"]) == ("run_shell_command", COMMAND)
        assert "release 4.2" in call["result"]
        assert (call["error"], call["rejected"]) == (None, None)
        tokens = trace["tokens"]
        assert (tokens["input"], tokens["output"]) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)


def _settings(endpoint: str) -> dict[str, Any]:
    """As docs/agents/gemini-cli.md says; what would reach for the network is off."""
    return {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {
            "enabled": True,
            "target": "local",
            "otlpEndpoint": endpoint,
            "otlpProtocol": "grpc",
            "logPrompts": True,
        },
    }


def traces(service: Service) -> list[str]:
    """Ids of traces with signals of their own."""
    signals: list[dict[str, Any]] = service.signals()
    return sorted({each["trace_id"] for each in signals if each["scope"] == "trace"})
