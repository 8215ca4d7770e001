"""A real tool that shows scores, as a server on loopback, out of a virtual environment of its own.

`python -m tests.support.tools.tool` makes those that are missing, below `.cache/tools`; each takes half a gigabyte.
With SPANWISE_TEST_ONLY_DUE=1 it makes those of which a test is due (`guarded.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from tests.support import guarded
from tests.support.processes import free_ports, missing
from tests.support.server_program import ServerProgram

FOLDER = Path(__file__).parent
VENVS = FOLDER.parents[2] / ".cache" / "tools"
SDKS = "sdks"
FRAMEWORKS = ("frameworks", "frameworks_apart", "frameworks_alone", "frameworks_layered")
"""Of agents; those that need other versions of the same libraries; those that import whatever else is installed; those
that instrument other libraries, which they bring in their own versions."""
EVALUATORS, PROMPTFOO = "evaluators", "promptfoo"
"""Those of others, whose scores are read; promptfoo is a package of Node, with a Node of its own."""
START = 240.0
"""Seconds: they import a few hundred modules, on a machine that tests share."""


@dataclass(frozen=True)
class Tool:
    """How a tool is started; `{port}`, `{folder}` and `{other}`, a second port, are filled in."""

    name: str
    command: Sequence[str]
    ready: str
    """A path that answers 200 once it serves."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


PHOENIX = Tool(
    name="phoenix",
    command=("phoenix", "serve"),
    ready="/v1/projects/default",
    environment={
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": "{port}",
        "PHOENIX_GRPC_PORT": "{other}",
        "PHOENIX_WORKING_DIR": "{folder}",
        "PHOENIX_TELEMETRY_ENABLED": "false",
    },
)
MLFLOW = Tool(
    name="mlflow",
    command=(
        "mlflow",
        "server",
        "--host=127.0.0.1",
        "--port={port}",
        "--workers=1",
        "--backend-store-uri=sqlite:///{folder}/mlflow.db",
        "--default-artifact-root={folder}/artifacts",
    ),
    ready="/health",
    environment={
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        # Ten consumers of jobs took half a core for as long as the server stood.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    },
)
OTELCOL = Tool(
    name="otelcol",
    command=("otelcol", f"--config={FOLDER / 'otelcol' / 'config.yaml'}"),
    ready="/v1/traces",
    environment={"HTTP_PORT": "{port}", "GRPC_PORT": "{other}", "BACKEND": "{backend}"},
)
"""OpenTelemetry's Collector, of Go."""
OUTLETS = (PHOENIX.name, MLFLOW.name, OTELCOL.name)


class Server(ServerProgram):
    """The tool over a folder; port and folder outlive `stop` and `start`. Or one that runs already, at `url`."""

    def __init__(
        self, tool: Tool, folder: Path, *, url: str | None = None, backend: str = ""
    ) -> None:
        """`backend`: where a Collector sends to."""
        self._tool = tool
        self._folder = folder
        port, other = free_ports(2)
        self._filled = {"port": str(port), "other": str(other), "folder": str(folder)}
        self._filled["backend"] = backend
        self.grpc = f"127.0.0.1:{other}"
        super().__init__(url or f"http://127.0.0.1:{port}", tool.ready, folder / "server.log")
        self._is_ours = url is None

    def start(self) -> Server:
        """Return when it serves."""
        if not self._is_ours:
            return self
        program, *arguments = (each.format(**self._filled) for each in self._tool.command)
        more = {key: value.format(**self._filled) for key, value in self._tool.environment.items()}
        binaries = VENVS / self._tool.name / "bin"
        path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
        return self.begin(
            binaries / program,
            *arguments,
            within=START,
            cwd=self._folder,
            env=os.environ | {"PATH": path} | more,
        )


def serve(tool: Tool, folder: Path, *, backend: str = "") -> Server:
    """The tool, started; the test is skipped, or fails where SPANWISE_REQUIRE_<TOOL>=1 says so, where it is missing."""
    url = os.environ.get(f"SPANWISE_TEST_{tool.name.upper()}")
    if url is None and not (VENVS / tool.name / "bin" / tool.name).exists():
        _absent(tool.name)
    return Server(tool, folder, url=url, backend=backend).start()


def _absent(name: str) -> NoReturn:
    why = f"NO {name.upper()}, NOT TESTED: `python -m tests.support.tools.tool` installs it"
    missing(name.upper(), why)


def python_of(name: str) -> Path:
    """The interpreter of an environment; skipped, or failed, as `serve` where it is missing."""
    python = VENVS / name / "bin" / "python"
    if not (VENVS / name / "installed.txt").exists():
        _absent(name)
    return python


def check_bodies(sdk: str, bodies: Sequence[Any]) -> None:
    """Bodies of requests against the models of a tool's own SDK; skipped, or failed, as `serve` where it is missing."""
    python = python_of(SDKS)
    assert bodies
    done = subprocess.run(
        [python, "-P", FOLDER / "check_sdk.py", sdk],
        input=json.dumps(bodies),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


NPM = ("npm", "ci", "--silent", "--ignore-scripts", "--omit=optional", "--omit=peer")


def install(name: str) -> None:
    """Make an environment, unless it is there and of the same versions."""
    venv = VENVS / name
    listed = FOLDER / f"{name}.txt"
    sources = FOLDER / name
    files = (listed, sources / "go.mod", sources / "package-lock.json")
    wanted = next(each for each in files if each.exists()).read_text()
    done = venv / "installed.txt"
    if done.exists() and done.read_text() == wanted:
        return
    if (sources / "package.json").exists():
        shutil.copytree(sources, venv, dirs_exist_ok=True)
        if shutil.which("npm") and not subprocess.run(NPM, cwd=venv, check=False).returncode:
            done.write_text(wanted)
        return  # the same
    if sources.is_dir():
        build = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", venv / "bin" / name, "."]
        if shutil.which("go") and not subprocess.run(build, cwd=sources, check=False).returncode:
            done.write_text(wanted)
        return  # where it is missing, its tests say so
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    python = venv / "bin" / "python"
    # A tool compiles what it imports: all of its files take a minute of two cores.
    given = ["-q", "--no-deps", "-r", listed]
    uv = [sys.executable, "-m", "uv", "pip", "install", "--system-certs", "--python", python]
    if subprocess.run([*uv, *given], check=False).returncode:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
        subprocess.run([*pip, *given], check=True)  # it knows of registries that uv was not given
    done.write_text(wanted)


def wanted() -> list[str]:
    """The environments that tests of this run need."""
    needed = {"outlets": (*OUTLETS, SDKS), "frameworks": (*FRAMEWORKS, EVALUATORS, PROMPTFOO)}
    not_due = guarded.not_due()
    return [each for group, names in needed.items() if group not in not_due for each in names]


if __name__ == "__main__":
    with ThreadPoolExecutor() as together:
        list(together.map(install, wanted()))
