"""Places that a container may be: it takes spans, scores them, asks a judge, runs a plug-in and stops, as elsewhere."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import asked
from tests.support.openai_server import OpenAiServer
from tests.support.processes import missing
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
PLUGIN = """
from evaluators import Score, Trace, evaluator

@evaluator(version="1")
def fine(trace: Trace) -> Score:
    return Score(value=1.0)
"""
ROOT = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
NO_HOME = ("env", "-u", "HOME", "-u", "USER", "-u", "LOGNAME")
READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,bind,ro / && ! touch /tmp/written && exec "$@"'
)


def read_only_root(folder: Path) -> Sequence[str]:
    """Nothing can be written but in the folder: not below /tmp either."""
    return (*ROOT, READ_ONLY, str(folder))


def no_shared_memory(folder: Path) -> Sequence[str]:
    """As if there were none: nothing can be written there."""
    return (*ROOT, 'mount -t tmpfs -o ro none /dev/shm && exec "$@"', str(folder))


def unknown_user(folder: Path) -> Sequence[str]:
    """A uid that /etc/passwd does not have, without HOME: as OpenShift and `docker run --user` start it."""
    folder.chmod(0o777)
    return ("unshare", "--user", "--map-user=54321", "--map-group=54321", *NO_HOME)


@pytest.mark.parametrize("place", [read_only_root, no_shared_memory, unknown_user])
def test_it_works_there(tmp_path: Path, place: Callable[[Path], Sequence[str]]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "mine.py").write_text(PLUGIN)
    with (
        OpenAiServer() as judge,
        Service(
            folder,
            f'plugins=["{tmp_path / "mine.py"}"]',
            "windows.trace.root_grace=300ms",
            *judge.settings,
            inside=place(folder),
        ) as service,
    ):
        send(service.grpc, asked("s1", "hello"))
        service.wait_for("all kinds of scores", lambda: kinds(service) >= KINDS)
        assert service.stop() == 0
    said = service.output.read_text()
    assert "Traceback" not in said
    assert "ERROR" not in said


GREEDY = """
from evaluators import Score, Trace, evaluator

@evaluator(version="1")
def greedy(trace: Trace) -> Score:
    return Score(value=len(b"x" * (700 << 20)) / (700 << 20))
"""


@pytest.fixture
def full_at_400_mb() -> Iterator[Path]:
    """A cgroup of its own, of version 1 or 2."""
    top = Path("/sys/fs/cgroup")
    folder = (top / "memory" if (top / "memory").is_dir() else top) / f"spanwise-{os.getpid()}"
    limit = "memory.limit_in_bytes" if folder.parent != top else "memory.max"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(400 << 20))
    except OSError as error:
        if folder.is_dir():
            folder.rmdir()
        why = f"THE END OF A CONTAINER'S MEMORY IS NOT TESTED: no cgroup can be made here: {error}"
        missing("CGROUP", why)
    yield folder
    folder.rmdir()


def test_at_the_end_of_its_memory_the_kernel_ends_the_plug_in(
    tmp_path: Path, full_at_400_mb: Path
) -> None:
    (tmp_path / "mine.py").write_text(GREEDY)
    with Service(
        tmp_path / "data",
        f'plugins=["{tmp_path / "mine.py"}"]',
        "windows.trace.root_grace=300ms",
        "embedder.kind=none",
        inside=("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(full_at_400_mb / "cgroup.procs")),
    ) as service:
        send(service.grpc, *(asked(f"s{n}", "hello") for n in range(10)))
        service.wait_for("ours of all", lambda: len(said_of(service, "confidence")) == 10)
        service.wait_for("theirs of all", lambda: len(said_of(service, "mine/greedy")) == 10)
        ends = [each["error"]["type"] for each in said_of(service, "mine/greedy").values()]
        assert set(ends) == {"worker_died", "switched_off"}
        died = service.metrics()['spanwise_worker_restarts_total{reason="died"}']
        assert died == ends.count("worker_died")
        assert service.stop() == 0


# What has the rest of the memory, as a neighbour in the container: it grows until the kernel has ended something. Not
# main itself: where the kernel counts what the worker had as free too late, it ends the next largest as well.
NEIGHBOUR = """
import os
from pathlib import Path

folder = Path(os.environ["LIMITED"])
events = next(folder / each for each in ("memory.oom_control", "memory.events") if (folder / each).exists())
kills = lambda: events.read_text().split("oom_kill ")[1].split()[0]
before, held = kills(), []
while kills() == before:
    held.append(b"x" * (64 << 10))
"""


def test_at_the_end_of_its_memory_the_kernel_ends_a_worker_and_the_service_goes_on(
    tmp_path: Path, full_at_400_mb: Path
) -> None:
    own = {**os.environ, "LIMITED": str(full_at_400_mb)}
    enter = ("sh", "-c", 'echo $$ > "$LIMITED/cgroup.procs" && exec "$@"', "sh")
    with Service(
        tmp_path / "data",
        "windows.trace.root_grace=300ms",
        "embedder.kind=none",
        inside=("env", f"LIMITED={full_at_400_mb}", *enter),
    ) as service:
        send(service.grpc, asked("before", "hello"))
        service.wait_for("a first score", lambda: said_of(service, "confidence"))
        subprocess.run([*enter, sys.executable, "-c", NEIGHBOUR], env=own, timeout=60, check=False)
        died = 'spanwise_worker_restarts_total{reason="died"}'
        service.come_to(1, lambda: min(1, service.metrics().get(died, 0)))
        send(service.grpc, *(asked(f"s{n}", "hello", number=n) for n in range(1, 10)))
        service.wait_for("all scores", lambda: len(said_of(service, "confidence")) == 10)
        assert service.stop() == 0


def said_of(service: Service, evaluator: str) -> dict[str, dict[str, Any]]:
    """Of an evaluator, by trace."""
    return {each["trace_id"]: each for each in service.signals() if each["evaluator"] == evaluator}


KINDS = {("mine/fine", "custom"), ("task_completion", "llm_judge"), ("coherence", "embedding")}


def kinds(service: Service) -> set[tuple[str, str]]:
    """Evaluator and method of what was scored."""
    scored = [each for each in service.signals() if each["outcome"] != "failed"]
    return {(each["evaluator"], each["method"]) for each in scored}
