"""What a command has read and does not hold in memory: bytes in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple, Self

from collector.base.errors import ConfigError

IN_MEMORY = 8 << 20
"""Bytes up to which no file is made."""


class SpoolPlace(NamedTuple):
    """Where bytes stand in their spool."""

    offset: int
    size: int


class Spool:
    """Bytes, first all written, then read in any order.

    The file stands in the folder that TMPDIR names (else /tmp). It has no name, so that no other user can open it and
    it goes with the process, however that ends. Use it as a context manager.

    Raises:
        ConfigError: from every method: the file cannot be made, written or read.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - `__exit__` closes it
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, content: bytes) -> SpoolPlace:
        """Append the bytes; returns where they stand."""
        with _explained():
            self._file.write(content)
        place = SpoolPlace(self._end, len(content))
        self._end += len(content)
        return place

    def read(self, place: SpoolPlace) -> bytes:
        """The bytes that `add` put there."""
        with _explained():
            self._file.seek(place.offset)
            return self._file.read(place.size)


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{tempfile.tempdir or 'TMPDIR'}: {error.strerror}; recordings are sorted in a temporary file: "
            "set TMPDIR to a folder with about twice their size to spare"
        ) from error
