"""What README.md shows works: its first commands are run as they stand."""

import ast
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from evaluators.declare import declared
from scripts.research.false_alarms import HEALTHY, RECORDINGS, TROUBLED
from tests.support.command import spanwise
from tests.support.processes import free_ports, ran
from tests.support.service import ROOT

README = ROOT / "README.md"
EVALUATOR = ROOT / "docs" / "own-evaluator.md"
ONE_SCREEN = 55
"""Lines."""
ANY_EXPORTER = f"""{sys.executable} - <<'end'
import os
from opentelemetry.sdk._configuration import _OTelSDKConfigurator
from opentelemetry import trace
os.environ["OTEL_TRACES_EXPORTER"] = "otlp"
_OTelSDKConfigurator().configure()
with trace.get_tracer("any").start_as_current_span("chat", attributes={{
    "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "a-turn", "gen_ai.request.model": "m"}}):
    pass
trace.get_tracer_provider().shutdown()
print(os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"])
end"""
"""An agent whose SDK takes endpoint and protocol from its environment, as instrumented ones do."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY")
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
pytestmark = [pytest.mark.e2e]


def blocks(*languages: str, page: Path = README) -> list[str]:
    """The code blocks of these languages, in order."""
    return [code for language, code in BLOCK.findall(page.read_text()) if language in languages]


def commands() -> list[list[str]]:
    """The arguments of every `spanwise ...` that is shown, in a block or within a sentence."""
    within = re.findall(r"`([^`\n]*\bspanwise [^`\n]*)`", README.read_text())
    shown = [line for block in blocks("sh") for line in block.splitlines()]
    parts = [part for line in (*shown, *within) for part in re.split(r"\||&&|;", line)]
    found = [shlex.split(part, comments=True) for part in parts]
    return [words[1:] for words in found if words and Path(words[0]).name == "spanwise"]


def test_it_is_one_screen_with_commands() -> None:
    assert len(README.read_text().splitlines()) <= ONE_SCREEN
    assert commands()


@pytest.mark.timeout(200)
def test_its_first_commands_do_what_it_says(tmp_path: Path) -> None:
    """Word for word, in a shell, but for the ports: others may be at work on this machine. Every way to the internet is
    closed: the embedder's model comes with its package.
    """
    run, agent, curl = blocks("sh")[0].splitlines()
    (shown,) = re.findall(
        r"^```\n(spanwise_agent_reliability_ratio.*)\n```", README.read_text(), re.MULTILINE
    )
    ports = dict(zip(("4317", "4318", "4390"), map(str, free_ports(3)), strict=True))
    settings = {
        "SPANWISE_RECEIVER__GRPC__PORT": ports["4317"],
        "SPANWISE_RECEIVER__HTTP__PORT": ports["4318"],
        "SPANWISE_ADMIN__PORT": ports["4390"],
        "SPANWISE_DATA_DIR": str(tmp_path),
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{ports['4317']}",
        **dict.fromkeys(PROXIES, "http://127.0.0.1:9"),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
    }
    page = f"127.0.0.1:{ports['4390']}"
    process = subprocess.Popen(
        ["bash", "-c", f"exec {run}"],
        cwd=ROOT,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(f"curl -sf {page}/readyz", settings)
        shell(agent, settings)
        found = until(curl.replace("127.0.0.1:4390", page), settings)
        assert found == shown + "\n"
        for number, shown_export in enumerate(blocks("sh")[1].splitlines()):
            export = shown_export
            for port, ours in ports.items():
                export = export.replace(f":{port} ", f":{ours} ")
            service = f"printed-{number}"
            printed = shell(f"{export} OTEL_SERVICE_NAME={service}; {ANY_EXPORTER}", settings)
            assert printed == export.rpartition("=")[2] + "\n"
            until(f"curl -s {page}/api/v1/sessions?service={service} | grep a-turn", settings)
        assert ["doctor"] in commands()
        doctor = f".venv/bin/spanwise doctor --set admin.port={ports['4390']}"
        printed = shell(doctor, settings)
        assert "my-shop: genai: 1 turn in 1 trace" in printed
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def test_the_program_is_as_short_as_it_is_said_to_be() -> None:
    program = ast.parse((ROOT / "examples" / "agent.py").read_text())
    statements = [each for each in ast.walk(program) if isinstance(each, ast.stmt)]

    assert len([each for each in statements if not isinstance(each, ast.ImportFrom)]) <= 11


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode != 0,
    reason="this kernel gives no network namespaces to us: the proxies of the test above are all",
)
def test_offline_scoring_needs_no_network_at_all() -> None:
    """Not even loopback: a namespace without any interface."""
    recording = ROOT / "tests" / "data" / "captures" / "strands" / "session.otlp"
    done = ran(
        *("unshare", "-rn", sys.executable),
        *("-m", "collector.commands.start", "evaluate", str(recording)),
    )

    assert done.returncode == 0, done.stderr
    assert "coherence" in done.stdout


def shell(command: str, environment: Mapping[str, str]) -> str:
    """What the command printed; empty if it failed."""
    done = ran("bash", "-c", command, env={**os.environ, **environment})
    return done.stdout if done.returncode == 0 else ""


def until(command: str, environment: Mapping[str, str]) -> str:
    """What it printed once it succeeded, within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if printed := shell(command, environment):
            return printed
        time.sleep(0.3)
    raise AssertionError(f"{command}: not within a minute")


@pytest.mark.parametrize(("scenarios", "code"), [(HEALTHY, 0), (TROUBLED, 1)])
def test_the_limit_shown_passes_for_healthy_agents_and_for_no_others(
    scenarios: frozenset[str], code: int, tmp_path: Path
) -> None:
    """`evaluate recordings/ --fail-under ...` as it stands, over the tests' recordings."""
    (shown,) = [words for words in commands() if "--fail-under" in words]
    for path in RECORDINGS[0].glob("*/*.otlp"):
        if path.stem in scenarios:
            folder = tmp_path / "recordings" / path.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)

    here = [str(tmp_path / word) if word.startswith("recordings") else word for word in shown]
    done = spanwise(*here)

    assert done.code == code, done.err or done.out[-2000:]


def test_the_evaluator_of_ones_own_is_one(tmp_path: Path) -> None:
    (code,) = blocks("python", page=EVALUATOR)
    module = tmp_path / "block.py"
    module.write_text(code)

    made = runpy.run_path(str(module))

    (spec,) = (spec for value in made.values() if (spec := declared(value)) is not None)
    assert spec.name == "tool_success"


def test_every_file_that_it_names_is_there() -> None:
    text = README.read_text()
    linked = [
        each
        for each in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
        if "://" not in each and not each.startswith("mailto:")
    ]

    assert [each for each in linked if not (ROOT / os.path.normpath(each)).exists()] == []


def test_the_rules_shown_are_written_as_a_file_of_rules(tmp_path: Path) -> None:
    (words,) = [words for words in commands() if words[0] == "slo"]
    command, into, name = words

    done = spanwise(command, cwd=tmp_path)

    assert (into, done.code) == (">", 0), done.err
    assert Path(name).suffix == ".yml"
    assert {"AgentFault", "AgentScoreDrop"} <= {
        rule.get("alert") for group in yaml.safe_load(done.out)["groups"] for rule in group["rules"]
    }
