"""A service at rest wakes up rarely, and gives its threads the interpreter in less than a slice of its event loop."""

import subprocess
import sys
from pathlib import Path

import pytest

from collector.base.time_slice import SLICE, TURN
from tests.bench.rest import at_rest
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


def test_a_service_that_is_sent_nothing_wakes_up_a_few_times_a_second() -> None:
    """Twice, and some for what the threads of its event loop hand over."""
    assert at_rest(seconds=5).wakeups <= 5
