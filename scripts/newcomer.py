"""How long a newcomer waits at each step: `python -m scripts.newcomer` prints the table of docs/first-steps.md.

Everything happens in a temporary folder: a clone of this checkout's last commit, its own `.venv`, its own data.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 900.0
PORTS = ("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0")
GAUGE = "spanwise_agent_reliability_ratio{"
Step = tuple[str, str, float]


def main(folder: Path) -> list[Step]:
    """The steps: what, the command, seconds."""
    clone = folder / "spanwise"
    steps: list[Step] = []

    def step(what: str, command: str, done: Callable[[], object]) -> None:
        began = time.monotonic()
        done()
        steps.append((what, command, time.monotonic() - began))

    step("clone", "git clone", lambda: _call("git", "clone", "-q", str(ROOT), str(clone)))
    step("install", "make install", lambda: _call("make", "install", cwd=clone))
    output = folder / "output"
    with output.open("wb") as file:
        settings = [word for each in PORTS for word in ("--set", each)]
        service = subprocess.Popen(  # noqa: S603 - our own
            [str(clone / ".venv/bin/spanwise"), "run", *settings], cwd=folder, stdout=file
        )
    try:
        step(
            "the service is ready", "make run", lambda: _wait(lambda: "send over" in _read(output))
        )
        places = dict(re.findall(r"^(\w+) +(\S+)", _read(output), re.MULTILINE))
        target = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{places['gRPC']}"}
        agent = [str(clone / ".venv/bin/python"), str(clone / "examples/agent.py")]
        step("an agent has answered", "python examples/agent.py", lambda: _call(*agent, env=target))
        signals = folder / "spanwise-data" / "signals.jsonl"
        step("its first signal", "signals.jsonl", lambda: _wait(lambda: _read(signals)))
        step("its gauge", "/metrics", lambda: _wait(lambda: GAUGE in _get(places["metrics"])))
        step("the page shows it", "/", lambda: _wait(lambda: "helper" in _get(places["page"])))
    finally:
        service.terminate()
        service.wait(60)
    return steps


def _call(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def _wait(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit("a step took too long")
        time.sleep(0.05)


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own
        return answer.read().decode()


def table(steps: list[Step]) -> str:
    """The steps and their sum so far."""
    lines, total = ["| step | by | seconds | so far |", "|---|---|---|---|"], 0.0
    for what, command, seconds in steps:
        total += seconds
        lines.append(f"| {what} | `{command}` | {seconds:.1f} | {total:.0f} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    if shutil.which("git") is None:
        sys.exit("git is needed")
    with tempfile.TemporaryDirectory(prefix="spanwise-newcomer-") as temporary:
        sys.stdout.write(table(main(Path(temporary))))
