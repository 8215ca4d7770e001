"""The real Codex, its log exporter pointed at the real process; only the model is a script on loopback."""

import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.node_packages import installed
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_model import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
QUICK = ("windows.trace.root_grace=1s", "windows.trace.idle=8s", "windows.session.idle=10s")
COMMAND = "cat notes.txt"
SETTINGS = """
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{model}"
wire_api = "responses"
env_key = "MODEL_KEY"

[analytics]
enabled = false

[otel]
log_user_prompt = true
log_agent_responses = true
metrics_exporter = "none"
exporter = {{ otlp-http = {{ endpoint = "{logs}", protocol = "binary" }} }}
"""


@pytest.fixture(scope="module")
def codex() -> Path:
    """The program itself: its package for this machine, without the script that looks for it."""
    folder = installed("codex", "the real Codex")
    found = sorted(folder.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"))
    assert found, "npm installed no program for this machine"
    return found[0]


def prompt(codex: Path, words: str, *, folder: Path, resume: bool) -> str:
    """What it prints to one prompt."""
    ended = subprocess.run(
        [
            str(codex),
            "exec",
            *(("resume", "--last") if resume else ()),
            "--skip-git-repo-check",
            words,
        ],
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent / "home"), "MODEL_KEY": "none"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


def test_its_turns_are_traces_of_one_session(codex: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    (home / ".codex").mkdir(parents=True)
    (folder / "notes.txt").write_text("release 4.2\n")
    asked = ("Which release is this?", "Are you sure?")
    with (
        ResponsesServer(COMMAND) as model,
        Service(tmp_path / "data", *QUICK) as service,
    ):
        logs = f"http://{urlsplit(service.http).netloc}/v1/logs"
        settings = SETTINGS.format(model=f"{model.url}/v1", logs=logs)
        (home / ".codex" / "config.toml").write_text(settings)
        for number, words in enumerate(asked):
            assert prompt(codex, words, folder=folder, resume=number > 0) == ANSWER
        service.wait_for("both turns are scored", lambda: len(traces(service)) == 2, timeout=60)
        found = [service.shown(each)["trace"] for each in traces(service)]

    found.sort(key=lambda each: each["start"])
    assert [(each["input"], each["output"]) for each in found] == [(one, ANSWER) for one in asked]
    assert len({each["session_id"] for each in found}) == 1
    for trace in found:
        (call,) = trace["tool_calls"]
        assert (call["name"], call["arguments"]) == ("exec_command", {"cmd": COMMAND})
        assert (call["result"].strip(), call["error"], call["rejected"]) == (
            "release 4.2",
            None,
            None,
        )
        tokens = trace["tokens"]
        assert (tokens["input"], tokens["output"]) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)


def traces(service: Service) -> list[str]:
    """Ids of traces with signals of their own."""
    signals: list[dict[str, Any]] = service.signals()
    return sorted({each["trace_id"] for each in signals if each["scope"] == "trace"})
