"""A data folder whose files are cut off or overwritten: named once, never a traceback, never an end by a signal."""

import os
import random
import re
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

PAGE = 4096
VALUE = 4
"""LMDB's flag of a page that holds a value."""
COUNT = 60


def text_of(number: int) -> str:
    return random.Random(number).randbytes(10_000).hex()


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a service that was stopped while its traces were open."""
    data = tmp_path_factory.mktemp("left") / "data"
    with Service(data, "windows.trace.root_grace=1h") as service:
        send(service.grpc, *(asked(f"s{n}", text_of(n)) for n in range(COUNT)))
    return data


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a service that had scored and indexed its traces."""
    data = tmp_path_factory.mktemp("scored") / "data"
    with Service(data, "windows.trace.root_grace=100ms") as service:
        send(service.grpc, *(asked(f"s{n}", text_of(n)) for n in range(COUNT)))
        service.shown(trace_id(f"s{COUNT - 1}"))
    return data


def copied(data: Path, folder: Path) -> Path:
    return Path(shutil.copytree(data, folder / "data"))


@pytest.mark.parametrize(
    ("name", "share"),
    [("log/data.mdb", 0.5), ("log/data.mdb", 0.02), ("index/index.sqlite", 0.5)],
)
def test_a_truncated_file_is_a_clear_line(
    tmp_path: Path, scored: Path, name: str, share: float
) -> None:
    data = copied(scored, tmp_path)
    file = data / name
    os.truncate(file, int(file.stat().st_size * share))

    ended = run_for_a_moment(data)

    assert ended.code == (1 if name.startswith("log") else 0), (ended.code, ended.err[-500:])
    assert "Traceback" not in ended.err
    assert len([line for line in ended.complaints if f"{file} is damaged: " in line]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_pages_overwritten_at_random_end_nothing_with_a_traceback(
    tmp_path: Path, left: Path, seed: int
) -> None:
    """Pages of the trees among them: then the log is refused with one line."""
    data = copied(left, tmp_path)
    file = data / "log" / "data.mdb"
    pages = file.stat().st_size // PAGE
    chance = random.Random(seed)
    with file.open("r+b") as stream:
        for page in chance.sample(range(2, pages), pages // 20):
            stream.seek(page * PAGE + 16 * (seed % 2))
            stream.write(chance.randbytes(PAGE - 16 * (seed % 2)))

    ended = run_for_a_moment(data)

    assert ended.code in (0, 1), (ended.code, ended.err[-500:])
    assert "Traceback" not in ended.err
    named = re.findall(r"A record of `\w+`, partition \d+, offset \d+", ended.err)
    assert len(named) == len(set(named))
    assert ended.code == 0 or f"{file} is damaged: " in ended.complaints[-1]


def test_each_damaged_record_is_named_once_and_all_others_are_scored(
    tmp_path: Path, left: Path
) -> None:
    data = copied(left, tmp_path)
    damaged = [0, 7, 8, COUNT - 1]
    file = data / "log" / "data.mdb"
    content = bytearray(file.read_bytes())
    for number in damaged:
        at = page_of(text_of(number)[9_000:9_040].encode(), content)
        content[at : at + PAGE] = random.Random(number).randbytes(PAGE)
    file.write_bytes(content)

    with Service(data, "windows.trace.root_grace=100ms") as service:
        sound = {trace_id(f"s{n}") for n in range(COUNT) if n not in damaged}
        seen = service.come_to(
            sound, lambda: {each["trace_id"] for each in service.signals()} - {None}
        )
        poison = 'spanwise_poison_records_total{topic="spans"}'
        counted = service.come_to(len(damaged), lambda: service.metrics().get(poison))

    assert seen == sound
    assert counted == len(damaged)
    named = re.findall(r"A record of `spans`, .*", service.output.read_text())
    assert len(named) == len(damaged)
    assert all("it is damaged: its CRC does not match" in line for line in named)


def page_of(text: bytes, content: bytearray) -> int:
    """Where the page of a value begins that holds the text; pages of trees hold old texts where they are free."""
    at = content.index(text)
    while content[at // PAGE * PAGE + 10] != VALUE:
        at = content.index(text, at + 1)
    return at // PAGE * PAGE


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
