"""Files and settings that nobody means well with: one clear line, exit 1 or 2, never a traceback, never gigabytes."""

import gzip
import itertools
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.asking import asked
from tests.support.command import spanwise
from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

MB = 1 << 20
COMMANDS = ("evaluate", "inspect", "doctor")
PATIENCE = 40.0


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(each)) + each for each in bodies)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes((content[at] ^ 0xFF,)) + content[at + 1 :]


# --- recordings -----------------------------------------------------------------------------------------------------


JUNK = {
    "junk.otlp": framed(b"\xff" * 40),
    "second.otlp": framed(asked("s", "Where?"), b"\x0a\xff\xff\xff\xff\x0f"),
    "text.otlp": framed(b"\x0a\x05hello"),
    "head.otlp": b"\0\0",
    "junk.otlp.gz": gzip.compress(framed(b"\xff" * 40), mtime=0),
    "no.otlp.gz": b"this is not a gzip",
    "cut.otlp.gz": gzip.compress(framed(asked("s", "Where?")), mtime=0)[:-9],
    "flipped.otlp.gz": flipped(gzip.compress(framed(asked("s", "Where?")), mtime=0), 20),
    "list.json": b"[1, 2, 3]\n",
    "deep.json": b"[" * 100_000 + b"\n",
    "bytes.jsonl": b"\xff\xfe\x00{}\n",
}


def test_a_junk_record_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    for name, content in JUNK.items():
        (tmp_path / name).write_bytes(content)
        for command in COMMANDS:
            spanwise(command, str(tmp_path / name)).assert_one_line(name)


@pytest.mark.parametrize("inside", ["no request", "requests"])
def test_a_small_file_does_not_take_gigabytes(tmp_path: Path, inside: str) -> None:
    """Three megabytes that unfold to three gigabytes: announced as one request, or as requests that are sound."""
    bomb = tmp_path / "bomb.otlp.gz"
    bomb.write_bytes(_one_request() if inside == "no request" else _sound_requests())

    code, peak, err = peak_of("inspect", str(bomb))

    assert code in (1, 2)
    assert "Traceback" not in err
    assert str(bomb) in err
    assert peak < 512 * MB, f"{peak / MB:.0f} MB"


def _one_request() -> bytes:
    announced = gzip.compress(struct.pack(">I", 3 * 1024 * MB))
    return announced + gzip.compress(bytes(64 * MB), 1) * 48


def _sound_requests() -> bytes:
    one = gzip.compress(framed(asked("s", "x" * 8 * MB)), 1)
    return one * (3 * MB // len(one))


def test_an_announced_size_is_not_believed(tmp_path: Path) -> None:
    recording = tmp_path / "announced.otlp"
    recording.write_bytes(struct.pack(">I", 0xFFFFFFFF) + bytes(100))

    code, peak, _ = peak_of("inspect", str(recording))

    assert code in (1, 2)
    assert peak < 512 * MB, f"{peak / MB:.0f} MB"


MEASURED = """
import atexit, runpy, sys
def say_peak():
    status = open("/proc/self/status").read()
    sys.stderr.write(status.split("VmHWM:")[1].split("kB")[0])
atexit.register(say_peak)
runpy.run_module("collector.commands.start", run_name="__main__")
"""
"""Runs a command and says its peak, in KiB, as the last word of stderr. ru_maxrss would count the test process too,
which the command was forked from."""


def peak_of(*arguments: str) -> tuple[int, int, str]:
    """Exit code, most resident bytes and stderr of a command."""
    limited = f'ulimit -v {8 << 20}; exec "$@"'
    ended = subprocess.run(
        ["bash", "-c", limited, "-", sys.executable, "-c", MEASURED, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    err, _, peak = ended.stderr.decode(errors="replace").rstrip().rpartition("\n")
    return ended.returncode, int(peak) << 10, err


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    """Each is refused at once; a process that waited would never end."""
    fifo = tmp_path / "folder" / "pipe.otlp"
    fifo.parent.mkdir()
    os.mkfifo(fifo)

    for command, path in itertools.product(COMMANDS, (fifo, fifo.parent)):
        ended = spanwise(command, str(path), timeout=PATIENCE)
        ended.assert_one_line(str(fifo), "not a regular file")


def test_evaluating_nothing_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty.otlp").write_bytes(b"")

    ended = spanwise("evaluate", str(tmp_path), timeout=PATIENCE)

    ended.assert_one_line(str(tmp_path))


# --- the configuration ----------------------------------------------------------------------------------------------


def test_a_fifo_of_settings_is_not_waited_for(tmp_path: Path) -> None:
    """Expectations are a setting that names a file: they are looked at twice, before and while they are read."""
    fifo = tmp_path / "spanwise.yaml"
    os.mkfifo(fifo)

    for command in ("run", "validate"):
        ended = spanwise(command, "--config", str(fifo), timeout=PATIENCE)
        ended.assert_one_line(str(fifo), "not a regular file")
    ended = spanwise("validate", "--set", f"expectations={fifo}", timeout=PATIENCE)
    ended.assert_one_line(str(fifo))
