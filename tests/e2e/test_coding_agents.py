"""The real Claude Code, Codex and Gemini CLI, pointed at the real process; only the model is a script on loopback."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.processes import ROOT, installed, ran
from tests.support.scripted_models import (
    ANSWER,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    AnthropicServer,
    GeminiServer,
    ResponsesServer,
    ScriptedModel,
)
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
QUICK = ("windows.trace.root_grace=1s", "windows.trace.idle=8s", "windows.session.idle=10s")
COMMAND = "cat notes.txt"
ASKED = ("Which release is this?", "Are you sure?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingAgent:
    """How one of them is started. `{model}`, `{http}` and `{grpc}` are filled in: base addresses."""

    package: str
    """Its folder in tests/support."""
    program: str
    """A pattern below `node_modules`: the program itself, without the script that looks for it."""
    model: type[ScriptedModel]
    arguments: Callable[[str, bool], Sequence[str]]
    """For a prompt that begins a session, or goes on with the last."""
    environment: Mapping[str, str]
    settings: str | None = None
    """A file below the home folder; its folder in tests/support has the content, as docs/agents says."""
    tool: tuple[str, str]
    """What it calls its shell, and the argument with the command."""
    exports_texts: bool = True
    """Whether its log records hold answers and results too."""


CLAUDE_CODE = CodingAgent(
    package="claude_code",
    program="@anthropic-ai/claude-code-*/claude",
    model=AnthropicServer,
    arguments=lambda words, goes_on: (
        *(("--continue",) if goes_on else ()),
        *("-p", words, "--allowedTools", f"Bash({COMMAND})"),
    ),
    environment={
        "ANTHROPIC_BASE_URL": "{model}",
        "ANTHROPIC_API_KEY": "sk-ant-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "{http}",
        "OTEL_LOGS_EXPORT_INTERVAL": "500",
        "OTEL_LOG_USER_PROMPTS": "1",
        "OTEL_LOG_TOOL_DETAILS": "1",
        "OTEL_LOG_ASSISTANT_RESPONSES": "1",
    },
    tool=("Bash", "command"),
    exports_texts=False,
)
CODEX = CodingAgent(
    package="codex",
    program="@openai/codex-*/vendor/*/bin/codex",
    model=ResponsesServer,
    arguments=lambda words, goes_on: (
        *("exec", *(("resume", "--last") if goes_on else ()), "--skip-git-repo-check", words),
    ),
    environment={"MODEL_KEY": "none"},
    settings=".codex/config.toml",
    tool=("exec_command", "cmd"),
)
GEMINI_CLI = CodingAgent(
    package="gemini_cli",
    program="@google/gemini-cli/bundle/gemini.js",
    model=GeminiServer,
    arguments=lambda words, goes_on: (
        *("--model", "gemini-2.5-pro", "--approval-mode", "yolo"),
        *(("--resume", "latest") if goes_on else ()),
        *("--prompt", words),
    ),
    environment={
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": "{model}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    settings=".gemini/settings.json",
    tool=("run_shell_command", "command"),
)


@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX, GEMINI_CLI], ids=lambda agent: agent.package)
def test_its_turns_are_traces_of_one_session(agent: CodingAgent, tmp_path: Path) -> None:
    modules = installed(agent.package, f"the real {agent.package}") / "node_modules"
    programs = sorted(modules.glob(agent.program))
    assert programs, "npm installed no program for this machine"
    start = ["node"] if programs[0].suffix == ".js" else []
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "notes.txt").write_text("release 4.2\n")
    with agent.model(COMMAND) as model, Service(tmp_path / "data", *QUICK) as service:

        def filled(text: str) -> str:
            text = text.replace("{model}", model.url).replace("{grpc}", f"http://{service.grpc}")
            return text.replace("{http}", f"http://{urlsplit(service.http).netloc}")

        if agent.settings is not None:
            file = home / agent.settings
            file.parent.mkdir()
            template = ROOT / "tests" / "support" / agent.package / file.name
            file.write_text(filled(template.read_text()))
        given = {name: filled(value) for name, value in agent.environment.items()}
        for number, words in enumerate(ASKED):
            ended = ran(
                *start,
                str(programs[0]),
                *agent.arguments(words, number > 0),
                cwd=folder,
                env={"PATH": os.environ["PATH"], "HOME": str(home), **given},
                timeout=120,
            )
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert ended.stdout.strip() == ANSWER
        service.wait_for(
            "both turns are scored", lambda: len(service.scored_traces()) == 2, timeout=120
        )
        found = [service.shown(each)["trace"] for each in service.scored_traces()]

    found.sort(key=lambda each: each["start"])
    assert [each["input"] for each in found] == list(ASKED)
    if agent.exports_texts:
        assert [each["output"] for each in found] == [ANSWER, ANSWER]
    assert len({each["session_id"] for each in found}) == 1
    name, argument = agent.tool
    for trace in found:
        (call,) = trace["tool_calls"]
        assert (call["name"], call["arguments"][argument]) == (name, COMMAND)
        assert (call["error"], call["rejected"]) == (None, None)
        if agent.exports_texts:
            assert "release 4.2" in call["result"]
        tokens = trace["tokens"]
        assert (tokens["input"], tokens["output"]) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
