"""Signals as a rotating file, one JSON object per line: signals.jsonl, signals.jsonl.1 (newer) .. .keep (oldest)."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, ClassVar, Self, TypeVar

import msgspec

from collector.base.errors import ConfigError, Retryable
from collector.base.files import sync_folder, unwritable
from collector.config.tree import Config
from collector.log.port import Position
from collector.records.published_signals import line_blocks
from collector.records.signal_batch import Published
from collector.sinks.feedback_delivery import OutgoingFeedback
from collector.sinks.port import Refused

_log = logging.getLogger(__name__)
_G = TypeVar("_G")
_T = TypeVar("_T")
TRIES = 5  # writes of one batch: no file is moved so often meanwhile, but there are file systems whose inodes change


class JsonlSink:
    """Appends, flushes and fsyncs each batch before it counts as delivered.

    The file is valid JSONL after any crash: a torn last line is completed or cut off at the next start, and its
    signal comes again with the same bytes, as the commit follows the fsync. One process per path.
    """

    name: ClassVar[str] = "jsonl"

    def __init__(self, path: Path, max_size: int, keep: int) -> None:
        """Write to `path`; rotate before it exceeds `max_size` bytes; keep `keep` rotated files."""
        self._path = path
        self._max_size = max_size
        self._keep = keep
        self._file: BinaryIO | None = None
        self._size = 0
        self._writing = threading.Lock()

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = config.sinks.jsonl
        if section is None:
            return None
        path = section.path or config.data_dir / "signals.jsonl"
        if why := _no_file(path):
            raise ConfigError(f"sinks.jsonl.path: {why}")
        return cls(path, section.max_size, section.keep)

    @classmethod
    async def reachable(cls, config: Config) -> str | None:
        """Without a path of its own the file is in `data_dir`, which is tried as such."""
        section = config.sinks.jsonl
        if section is None or section.path is None:
            return None
        why = _no_file(section.path) or unwritable(section.path.parent)
        return why and f"sinks.jsonl.path: {why}"

    async def deliver(self, signals: Sequence[Published]) -> None:
        """A full or read-only disk is `Retryable`; what is not on one line is refused."""
        refused = await self._in_thread(self._deliver, signals)
        if refused:
            raise Refused(refused)

    async def deliver_feedback(self, feedback: Sequence[OutgoingFeedback]) -> None:
        """Lines among those of signals; `type` distinguishes them."""
        await self._in_thread(self._append, [each.json + b"\n" for each in feedback])

    async def _in_thread(self, write: Callable[[_G], _T], given: _G) -> _T:
        """One at a time: a write goes on where its caller was cancelled."""

        def alone() -> _T:
            with self._writing:
                return write(given)

        try:
            return await asyncio.to_thread(alone)
        except OSError as error:
            raise Retryable(f"cannot write `{self._path}`: {error}") from error

    async def close(self, deadline: float) -> None:
        """Waits for the write under way, but not for a disk that has stopped answering."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await self._in_thread(JsonlSink._close, self)

    def _deliver(self, signals: Sequence[Published]) -> dict[Position, str]:
        lines, refused = _lines(signals)
        self._append(lines)
        return refused

    def _append(self, blocks: Sequence[bytes]) -> None:
        try:
            fitting: list[bytes] = []
            size = 0
            for block in blocks:
                fits = not self._would_overflow(size + len(block))
                for lines in (block,) if fits else _single(block):
                    if not fits and self._would_overflow(size + len(lines)):
                        self._write(fitting)
                        self._rotate_unless_empty()
                        fitting, size = [], 0
                    fitting.append(lines)
                    size += len(lines)
            self._write(fitting)
        except OSError:
            # The next try opens the file again and trims what this one may have torn.
            self._close()
            raise

    def _would_overflow(self, more: int) -> bool:
        if self._file is None:
            self._open()
        return self._size + more > self._max_size

    def _write(self, lines: Sequence[bytes]) -> None:
        """Into the file that is at the path: what went into one that was moved, removed or cut meanwhile goes again."""
        if not lines:
            return
        for _ in range(TRIES):
            file = self._open()
            if not self._is_at_path(file):
                _log.warning(
                    "`%s` was moved, removed or cut: signals go into the one that is there now",
                    self._path,
                )
                self._close()
                file = self._open()
            self._size += file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
            if self._is_at_path(file):
                return

    def _is_at_path(self, file: BinaryIO) -> bool:
        """Whether everything written is there; one that was cut in place (copytruncate) is as good as moved."""
        ours = os.fstat(file.fileno())
        try:
            return ours.st_size >= self._size and os.path.samestat(ours, self._path.stat())
        except FileNotFoundError:
            return False

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            repair(self._path)
            self._file = self._path.open("ab")
            self._size = self._file.tell()
            sync_folder(self._path.parent)
        return self._file

    def _rotate_unless_empty(self) -> None:
        if self._size == 0:
            return
        self._close()
        if self._keep == 0:
            self._path.unlink()
        else:
            for number in range(self._keep - 1, 0, -1):
                if self._rotated(number).exists():
                    self._rotated(number).replace(self._rotated(number + 1))
            self._path.replace(self._rotated(1))
        self._open()

    def _rotated(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def repair(path: Path) -> None:
    """Make the file end with a whole line: a last line that only lacks its break gets it, a torn one is cut off."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            start = content.rfind(b"\n") + 1
            tail = content[start:]
        if not tail:
            return
        if _is_object(tail):
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        else:
            file.truncate(start)
        file.flush()
        os.fsync(file.fileno())


def _no_file(path: Path) -> str | None:
    """Why the path can never be a file, so that it is not tried again; None: it can."""
    above = next(each for each in path.absolute().parents if each.exists())
    if path.is_dir():
        return f"{path} is a folder; name a file, such as {path / 'signals.jsonl'}"
    if path.exists() and not path.is_file():
        return f"{path} is a device or a pipe; name a file"
    if not above.is_dir():
        return f"{above} is not a folder, so {path} cannot be made; name another file"
    return None


def _lines(signals: Sequence[Published]) -> tuple[list[bytes], dict[Position, str]]:
    """Blocks of whole lines, and what is not on one."""
    lines: list[bytes] = []
    refused: dict[Position, str] = {}
    for block in line_blocks(signals):
        if block.lines.count(b"\n") == len(block.signals):
            lines.append(block.lines)
            continue
        for each in block.signals:
            if b"\n" in each.json:
                refused[each.position] = "not a JSON object on one line"
            else:
                lines.append(each.json + b"\n")
    return lines, refused


def _single(block: bytes) -> Iterator[bytes]:
    """Its lines, which end with line feeds alone: JSON may hold what Unicode takes for the end of a line."""
    return (line + b"\n" for line in block.split(b"\n")[:-1])


_Object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _is_object(value: bytes) -> bool:
    try:
        _Object.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return False
    return True
