"""Each Python page of docs/frameworks, as it stands: its framework asks a scripted model, and the service reads it."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from scripts.frameworks import PORTS, frameworks, install
from tests.support.frameworks.page_program import FOLDER, SESSION, agent, environment, program
from tests.support.frameworks.shop import QUESTION
from tests.support.processes import ran
from tests.support.scripted_models import ANSWER, ORDER_ANSWER, AnthropicServer, ChatServer
from tests.support.service import Service
from tests.support.tools.tool import FRAMEWORKS, python_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
PAGES = sorted(name for name, each in frameworks().items() if each.language == "python")
HEAVY = {
    "crewai",
    "dspy",
    "google-adk",
    "litellm",
    "livekit",
    "llamaindex",
    "mlflow",
    "semantic-kernel",
}
"""Four seconds or more of imports each: with `-m slow`, so that CI has time for the rest."""
APART = {"anthropic", "crewai"}
ALONE = {"laminar", "openlit"}
LAYERED = {"langwatch", "monocle"}
SPEAKS_ANTHROPIC = {"anthropic", "claude-agent-sdk"}
PINNED = {
    line.partition("==")[0]
    for name in FRAMEWORKS
    for line in (FOLDER.parent / "tools" / f"{name}.txt").read_text().splitlines()
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("pages") / "data"
    made = Service(folder, "windows.trace.root_grace=500ms", "embedder.kind=none", workers=0)
    made.start()
    try:
        yield made
    finally:
        made.kill()


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] if each in HEAVY else []) for each in PAGES],
)
def test_what_a_page_says_connects_its_framework(
    service: Service, name: str, tmp_path: Path
) -> None:
    homes = (APART, ALONE, LAYERED)
    at = next((number for number, names in enumerate(homes, 1) if name in names), 0)
    python = python_of(FRAMEWORKS[at])
    file = tmp_path / "app.py"
    file.write_text(program(name))
    grpc, http = (int(re.findall(r":(\d+)", each)[0]) for each in (service.grpc, service.http))
    with ChatServer() as chat, AnthropicServer("true") as messages:
        done = ran(
            python,
            file,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "PYTHONPATH": str(FOLDER),
                "OPENAI_BASE_URL": f"{chat.url}/v1",
                "OPENAI_API_BASE": f"{chat.url}/v1",
                "OPENAI_API_KEY": "none",
                "ANTHROPIC_BASE_URL": messages.url,
                "ANTHROPIC_API_KEY": "none",
                "CREWAI_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "true",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                **environment(name, {PORTS["grpc"]: grpc, PORTS["http/protobuf"]: http}),
                # So that each differs from the others.
                "OTEL_SERVICE_NAME": name,
                "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.4.2",
            },
            timeout=180,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    called = str(file) if name == "laminar" else "my-agent" if name == "pipecat" else name

    answer = ANSWER if name in SPEAKS_ANTHROPIC else ORDER_ANSWER
    found: list[dict[str, Any]] = []

    def is_answered() -> bool:
        found[:] = traces(service, called)
        return bool(found) and answer in (found[-1]["output"] or "")

    with suppress(AssertionError):  # what is there says more
        service.wait_for("the answer", is_answered)
    # Some have a trace for each call of the model: the first one asks, the last one answers.
    assert found, f"no session {SESSION} of {called}"
    assert QUESTION in (found[0]["input"] or ""), found
    assert answer in (found[-1]["output"] or ""), found
    assert {each["agent_version"] for each in sessions(service, called)} == {"1.4.2"}
    if "find_order" in agent(name):
        calls = [call for each in found for call in each["tool_calls"]]
        assert [(call["name"], call["arguments"]) for call in calls] == [
            ("find_order", {"order": "A-1001"})
        ]


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_installs_is_what_is_tried(name: str) -> None:
    wanted = re.findall(r"([\w-]+)(?:\[[\w,]+\])?(?:<[\d.]+)?", install(frameworks()[name]))

    assert {each for each in wanted if each not in ("pip", "install")} <= PINNED


def traces(service: Service, name: str) -> list[dict[str, Any]]:
    """Those of the session that the page's program named, in order, once they are whole."""
    if not sessions(service, name):
        return []
    listed = service.get(f"/api/v1/sessions/{SESSION}?service={name}")["traces"]
    return [
        service.get(f"/api/v1/traces/{each['trace_id']}")["trace"]
        for each in sorted(listed, key=lambda each: each["started"])
    ]


def sessions(service: Service, name: str) -> list[dict[str, Any]]:
    listed = service.get(f"/api/v1/sessions?service={name}")["items"]
    return [each for each in listed if each["session_id"] == SESSION]
