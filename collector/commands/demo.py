"""`spanwise demo`: the service, and an agent that gets worse after a while."""

from __future__ import annotations

import subprocess
import sys

from collector.app import Endpoints
from collector.commands.demo_agent import GOOD_SECONDS, SERVICE
from collector.commands.options import Files, Overrides, loaded
from collector.commands.run import run
from collector.config.tree import Config

GRACE = 1.0
"""Everything comes from one process here, so a trace need not wait long after its root."""


def command(config: Files = None, overrides: Overrides = None) -> None:
    """`run`, plus a scripted agent that gets worse after a while."""
    children: list[subprocess.Popen[bytes]] = []

    def start_agent(endpoints: Endpoints) -> None:
        command = [sys.executable, "-m", "collector.commands.demo_agent"]
        command.append(f"http://{endpoints.grpc}")
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE))  # noqa: S603 - our own
        sys.stdout.write(
            f"demo     the agent `{SERVICE}` works well for {GOOD_SECONDS:g} s, then it begins to loop:\n"
            f"         watch http://{endpoints.admin}/ and\n"
            f"         curl -s http://{endpoints.admin}/metrics | grep agent_reliability\n"
        )
        sys.stdout.flush()

    try:
        run(_quick(loaded(config, overrides)), beside=start_agent)
    finally:
        for child in children:
            child.communicate()  # closing its input ends it


def _quick(config: Config) -> Config:
    trace = config.windows.trace.model_copy(update={"root_grace": GRACE})
    return config.model_copy(update={"windows": config.windows.model_copy(update={"trace": trace})})
