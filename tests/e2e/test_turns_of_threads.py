"""The service, once it has started, gives its threads the interpreter within less than a slice of its event loop."""

import subprocess
import sys
from pathlib import Path

import pytest

from collector.base.time_slice import SLICE, TURN
from tests.support.service import ROOT

pytestmark = pytest.mark.e2e

# In a process of its own: the interval is one for all threads of a process.
SERVICE = """
import asyncio, pathlib, sys
import uvloop
from collector.service.app import App
from collector.config.tree import Config

async def serve():
    anywhere = {"host": "127.0.0.1", "port": 0}
    config = Config.model_validate({
        "data_dir": pathlib.Path(sys.argv[1]), "workers": 0, "embedder": {"kind": "none"},
        "receiver": {"grpc": anywhere, "http": anywhere}, "admin": anywhere,
    })
    stopping, at_once = asyncio.Event(), asyncio.Event()
    at_once.set()

    def ready(endpoints):
        print(sys.getswitchinterval())
        stopping.set()

    await App(config).run(stopping, ready, at_once=at_once)

uvloop.run(serve())
"""


def test_a_thread_waits_for_less_than_a_slice(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVICE, str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)

    assert float(done.stdout) == pytest.approx(TURN, abs=2e-6)
    assert TURN < SLICE / 2
