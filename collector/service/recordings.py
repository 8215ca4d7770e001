"""Recorded export requests, read back one by one: what the commands take as PATH.

.otlp            4-byte big-endian length + ExportTraceServiceRequest, repeated
.logs.otlp       the same of ExportLogsServiceRequests
.otlp.gz         the same, gzipped
.json  .jsonl    OTLP/JSON, one request per line (the Collector's file exporter)
"""

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO

from google.protobuf.message import Message

from collector.base.errors import ConfigError, TooLarge, Undecodable
from collector.base.files import open_regular
from collector.base.frames import read_frames
from collector.otlp.json import to_protobuf
from collector.otlp.signal import OtlpSignal
from collector.records.otlp_signals import OTLP_SIGNALS, TRACES

MAX_REQUEST = 128 << 20
"""Bytes of one request of a recording: twice what the receiver takes by default."""
UNFOLDED = 256 << 20  # bytes that any compressed file may unfold to
MAX_RATIO = 100  # above UNFOLDED, by how much a compressed file may grow; spans grow 5 to 30 times

BINARY = (".otlp", ".otlp.gz")
TEXT = (".json", ".jsonl")
_NOT_READ = {f".metrics.otlp{compressed}": "metrics" for compressed in ("", ".gz")}
_SIGNALS: dict[str, OtlpSignal | str] = _NOT_READ | {
    suffix: signal for signal in OTLP_SIGNALS for suffix in signal.recordings
}
"""By suffix of the file name, the signal; the name alone of one that is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    files: tuple[Path, ...]
    left_out: Mapping[Path, str]
    """Recordings of signals that are not read, with the name of their signal: metrics."""


def signal_of(path: Path) -> OtlpSignal | str:
    """The signal of a recording, by the longest suffix that its name has; only its name when it is not read."""
    return _SIGNALS[max(filter(path.name.endswith, _SIGNALS), key=len)]


def find(paths: Sequence[Path]) -> Recordings:
    """Files as they are; folders with their subfolders' `.otlp` and `.otlp.gz`.

    Raises ConfigError: a path does not exist, or is of no known kind.
    """
    files: list[Path] = []
    left_out: dict[Path, str] = {}
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder")
        for each in _below(path) if path.is_dir() else [path]:
            if not each.name.endswith((*BINARY, *TEXT)):
                raise ConfigError(
                    f"{each}: not a recording; expected one of {', '.join((*BINARY, *TEXT))}"
                )
            signal = signal_of(each)
            if isinstance(signal, str):
                left_out[each] = signal
            else:
                files.append(each)
    return Recordings(files=tuple(files), left_out=left_out)


def requests(path: Path, message: type[Message] = TRACES.request) -> Iterator[bytes]:
    """Every export request of a file, as protobuf bytes; `message` is what its OTLP/JSON holds.

    Raises ConfigError: the file cannot be read, is not a regular file, or holds what is not a request.
    """
    try:
        with open_regular(path) as file:
            if path.name.endswith(TEXT):
                yield from (_whole(*numbered, message) for numbered in _lines(file))
            else:
                content = _Unfolded(file) if path.name.endswith(".gz") else file
                yield from read_frames(content, most=MAX_REQUEST)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(f"{path}: {reason or error}") from error
    except (TooLarge, Undecodable) as error:
        kind = "OTLP/JSON lines" if path.name.endswith(TEXT) else "a recording"
        raise ConfigError(f"{path}: not {kind}: {error}") from error


def _whole(number: int, line: bytes, message: type[Message]) -> bytes:
    try:
        decoded = to_protobuf(line, message)
    except Undecodable as error:
        reason = str(error).partition(": line 1 column")[0]  # of this line alone
        raise Undecodable(f"line {number}: {reason}") from error
    if decoded.reasons:
        raise Undecodable(f"line {number}: {decoded.reasons[0]}")
    return decoded.request


def _below(folder: Path) -> Iterator[Path]:
    return iter(sorted(each for each in folder.rglob("*") if each.name.endswith(BINARY)))


class _Unfolded:
    """A gzipped file, read like the file in it. Raises TooLarge: it unfolds to far more than its own size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._stream = gzip.GzipFile(fileobj=file, mode="rb")  # pyright: ignore[reportArgumentType] - any file opened for reading will do
        self._left = max(UNFOLDED, MAX_RATIO * os.fstat(file.fileno()).st_size)

    def read(self, size: int, /) -> bytes:
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise TooLarge(f"it unfolds to more than {MAX_RATIO} times its size")
        return content


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    for number in count(1):
        line = stream.readline(MAX_REQUEST + 1)
        if not line:
            return
        if len(line) > MAX_REQUEST:
            raise TooLarge(f"line {number} is longer than {MAX_REQUEST >> 20} MiB")
        if stripped := line.strip():
            yield number, stripped
