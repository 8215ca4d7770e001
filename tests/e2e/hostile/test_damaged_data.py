"""A data folder whose files are cut off: named once, never a traceback, never an end by a signal."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.asking import asked, trace_id
from tests.support.command import Ended, settings
from tests.support.sender import send
from tests.support.service import ROOT, Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

COUNT = 60


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a service that had scored and indexed its traces."""
    data = tmp_path_factory.mktemp("scored") / "data"
    with Service(data, "windows.trace.root_grace=100ms") as service:
        send(
            service.grpc,
            *(asked(f"s{n}", random.Random(n).randbytes(10_000).hex()) for n in range(COUNT)),
        )
        service.shown(trace_id(f"s{COUNT - 1}"))
    return data


@pytest.mark.parametrize(
    ("name", "share"),
    [("log/data.mdb", 0.5), ("log/data.mdb", 0.02), ("index/index.sqlite", 0.5)],
)
def test_a_truncated_file_is_a_clear_line(
    tmp_path: Path, scored: Path, name: str, share: float
) -> None:
    data = Path(shutil.copytree(scored, tmp_path / "data"))
    file = data / name
    os.truncate(file, int(file.stat().st_size * share))

    ended = run_for_a_moment(data)

    assert ended.code == (1 if name.startswith("log") else 0), (ended.code, ended.err[-500:])
    assert "Traceback" not in ended.err
    assert len([line for line in ended.complaints if f"{file} is damaged: " in line]) == 1


def run_for_a_moment(data: Path) -> Ended:
    """`spanwise run` until it is ready and has worked for a moment, or has ended by itself."""
    output = data.parent / "moment.log"
    ports = ("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0")
    arguments = [sys.executable, "-m", "collector.commands.start", "run"]
    arguments += settings(f"data_dir={data}", *ports)
    with (
        output.open("wb") as stream,
        subprocess.Popen(arguments, cwd=ROOT, stdout=stream, stderr=stream) as process,
    ):
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if "gRPC" in output.read_text(errors="replace"):
                deadline = min(deadline, time.monotonic() + 2)
            time.sleep(0.1)
        process.terminate()
        try:
            process.wait(45)
        except subprocess.TimeoutExpired:
            process.kill()
    return Ended(code=process.returncode, out="", err=output.read_text(errors="replace"))
