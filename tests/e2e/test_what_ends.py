"""Whatever ends for good in the process ends the process: no probe is green over a standstill, no request hangs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ran

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

# Each victim in a process of its own, which must not live on without it.
SERVICE = """
import asyncio, ctypes, pathlib, sys, threading
import httpx, uvloop
from collector.service.app import App
from collector.config.tree import Config
from tests.support.dialect_spans import SpanSpec, request

victim = sys.argv[2]
at_once = asyncio.Event()
at_once.set()

def tasks():
    return [each for each in asyncio.all_tasks() if not each.get_name().startswith("Task-")]

def name(part):
    return part.get_name() if isinstance(part, asyncio.Task) else part.name

async def post(http):
    async with httpx.AsyncClient(verify=False) as client:
        answer = await client.post(
            f"http://{http}/v1/traces", content=request(SpanSpec(id=1)), timeout=30,
            headers={"content-type": "application/x-protobuf"},
        )
    print("answered", answer.status_code, flush=True)

async def kill(endpoints):
    print("tasks", *sorted({each.get_name() for each in tasks()}), sep=",", flush=True)
    threads = threading.enumerate()
    if any(each.name == victim for each in threads):
        killed = next(each for each in threads if each.name == victim)
        # No `Exception`: that would be the caller's whose work the thread is at.
        error = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(killed.ident), error)
        await post(endpoints.http)
    else:
        killed = next(each for each in tasks() if each.get_name() == victim)
        killed.cancel()
    while "again" in sys.argv[3:]:
        await asyncio.sleep(0.1)
        alive = {*tasks(), *threading.enumerate()}
        if killed not in alive and victim in {name(each) for each in alive}:
            stopping.set()
            return

stopping = asyncio.Event()

async def serve():
    anywhere = {"host": "127.0.0.1", "port": 0}
    config = Config.model_validate({
        "data_dir": pathlib.Path(sys.argv[1]), "workers": 1, "embedder": {"kind": "none"},
        "receiver": {"grpc": anywhere, "http": anywhere}, "admin": anywhere,
        "forward": {"endpoint": "http://127.0.0.1:9", "protocol": "http"},
        "judge": {"model": "openai/none", "base_url": "http://127.0.0.1:9", "api_key": "k"},
        "notify": {"page": "http://localhost:4320", "to": {"hook": {"webhook": "http://127.0.0.1:9"}}},
    })
    killing = []

    def ready(endpoints):
        killing.append(asyncio.create_task(kill(endpoints)))
    try:
        await App(config).run(stopping, ready, at_once=at_once)
    finally:
        await asyncio.gather(*killing)

uvloop.run(serve())
"""
TASKS = (
    "admin",
    "admin-http",
    "assemble",
    "closings",
    "closings read 0",
    "closings written",
    "forward",
    "glances",
    "health",
    "judge",
    "lag",
    "publish",
    "rank",
    "receiver-http",
    "score",
    "worker 0",
)
STARTED_AGAIN = {
    "agreement": "api",
    "delivering": "sink.jsonl",
    "feed": "api",
    "indexing": "api",
    "judge process": "judge",
    "metrics": "metrics",
    "notices": "notify",
}
"""Tasks of what only shows, and their rooms."""


def killed(folder: Path, victim: str, *more: str) -> subprocess.CompletedProcess[str]:
    """How the service ended; it must within this time."""
    command = [sys.executable, "-c", SERVICE, str(folder / "data"), victim, *more]
    return ran(*command)


@pytest.mark.parametrize("victim", TASKS)
def test_a_task_that_ends_ends_the_process(tmp_path: Path, victim: str) -> None:
    done = killed(tmp_path, victim)

    assert done.returncode == 1, done.stderr[-3000:]
    assert f"`{victim}` has ended" in done.stderr
    (found,) = (each for each in done.stdout.splitlines() if each.startswith("tasks,"))
    alike = {re.sub(r"read [1-9]$", "read 0", each) for each in found.split(",")[1:]}
    assert alike == {*TASKS, *STARTED_AGAIN, "watch"}


def test_the_end_of_the_thread_that_writes_the_log_refuses_and_ends_the_process(
    tmp_path: Path,
) -> None:
    done = killed(tmp_path, "log-writer")

    assert done.returncode == 1, done.stderr[-3000:]
    assert "answered 503" in done.stdout
    assert "The thread that writes the log has ended" in done.stderr


@pytest.mark.parametrize(("victim", "room"), STARTED_AGAIN.items())
def test_what_only_shows_is_started_again(tmp_path: Path, victim: str, room: str) -> None:
    done = killed(tmp_path, victim, "again")

    assert done.returncode == 0, done.stderr[-3000:]
    assert f"Room `{room}` failed (bug) and is started again" in done.stderr


def test_so_is_the_index_whose_thread_has_ended(tmp_path: Path) -> None:
    done = killed(tmp_path, "index", "again")

    assert done.returncode == 0, done.stderr[-3000:]
    assert "answered 200" in done.stdout
    assert "The thread `index` has ended" in done.stderr
    assert "Room `api` failed (bug) and is started again" in done.stderr
