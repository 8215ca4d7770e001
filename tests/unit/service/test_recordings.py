"""Reading recordings: nothing in a file is believed before it is seen."""

import gzip
import os
import struct
from pathlib import Path

import pytest

from collector.base.errors import ConfigError
from collector.service.recordings import MAX_RATIO, MAX_REQUEST, UNFOLDED, requests
from tests.support.asking import asked


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(each)) + each for each in bodies)


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        list(requests(path))
    (line,) = str(raised.value).splitlines()
    assert line.startswith(f"{path}: ")
    return line


def test_every_request_is_read(tmp_path: Path) -> None:
    bodies = [asked("s", "Where?", number=n) for n in range(3)] + [b""]
    plain, zipped = tmp_path / "a.otlp", tmp_path / "a.otlp.gz"
    plain.write_bytes(framed(*bodies))
    zipped.write_bytes(gzip.compress(framed(*bodies)))

    assert list(requests(plain)) == list(requests(zipped)) == bodies


@pytest.mark.parametrize("size", [MAX_REQUEST + 1, 0xFFFFFFFF])
def test_a_request_above_the_limit_is_refused_by_its_head(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.otlp"
    path.write_bytes(struct.pack(">I", size))

    assert f"a request of {size} bytes" in refusal(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{oops", "the body is not JSON: Expecting property name enclosed in double quotes"),
        ("[]", ""),
        ('{"resourceSpans": 3}', ""),
    ],
)
def test_one_bad_line_among_good_ones_is_named_and_none_is_guessed(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"resourceSpans": []}}\n\n{line}\n{{"resourceSpans": []}}\n')

    assert refusal(path).startswith(f"{path}: not OTLP/JSON lines: line 3: {reason}")


@pytest.mark.parametrize("cut", [2, 4, 10])
def test_an_end_within_a_request_is_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.otlp"
    path.write_bytes(framed(asked("s", "Where?"))[:cut])

    assert refusal(path).endswith("ends in the middle of a request")


def test_a_compressed_file_may_grow_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.otlp.gz"
    member = gzip.compress(framed(bytes(32 << 20)), 9)
    assert len(member) * MAX_RATIO * 9 < UNFOLDED
    path.write_bytes(member * (UNFOLDED // (32 << 20) - 1))
    assert sum(map(len, requests(path))) < UNFOLDED

    path.write_bytes(member * (UNFOLDED // (32 << 20) + 1))

    assert "unfolds to more than" in refusal(path)


@pytest.mark.parametrize("name", ["pipe.otlp", "pipe.otlp.gz", "pipe.jsonl"])
def test_only_a_regular_file_is_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)

    assert refusal(tmp_path / name).endswith("not a regular file")


def test_a_path_with_a_nul_is_refused() -> None:
    assert "NUL" in refusal(Path("a\0b.otlp"))
