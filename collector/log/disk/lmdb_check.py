"""The structure of an LMDB file, checked before LMDB maps it.

LMDB trusts its pages: one that is cut off or overwritten ends the process by a signal, or lets a write give pages away
that hold something. So every page of the trees is read here first, and where each value begins. The content of values
is not looked at: its owner has to.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collector.base.errors import DataDamaged
from collector.log.disk import lmdb_pages
from collector.log.disk.lmdb_pages import HEADER, NO_PAGE, Database, Meta, Node, Order, PageError

MAX_SECONDS = 10.0
"""What a check takes at most: about five million pages, 20 GiB, if they need not come from a slow disk."""
_OFTEN = 512
_DEEPEST = 32
"""Levels of a tree, as LMDB has it."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What a check found."""

    pages: int
    overwritten: int
    """Values whose first page was overwritten: its header is right again, the value is not."""
    is_whole: bool
    """False: the time ran out."""


def check(
    folder: Path,
    *,
    repair: bool = False,
    seconds: float = MAX_SECONDS,
    monotonic: Callable[[], float] = time.monotonic,
) -> CheckedFile:
    """Read every page of `data.mdb` that its trees need; a folder without one is sound.

    Args:
        folder: Of the environment; no process has it open.
        repair: Write the header of a value's first page again where it was overwritten: else LMDB would give pages away
            when the value is deleted.
        seconds: When to give up.
        monotonic: Seconds that never jump.

    Raises:
        DataDamaged: the file is cut off, or LMDB could not walk it.
        OSError: it cannot be read.
    """
    path = folder / "data.mdb"
    if not path.is_file() or not path.stat().st_size:
        return CheckedFile(0, 0, is_whole=True)
    descriptor = os.open(path, (os.O_RDWR if repair else os.O_RDONLY) | os.O_CLOEXEC)
    try:
        walk = _Walk(descriptor, repair=repair, until=monotonic() + seconds, monotonic=monotonic)
        is_whole = walk.run()
    except (PageError, struct.error) as error:
        raise DataDamaged(f"{path} is damaged: {error}") from error
    finally:
        os.close(descriptor)
    return CheckedFile(walk.pages, walk.overwritten, is_whole)


class _OutOfTimeError(Exception):
    """The check is given up."""


class _Walk:
    """One file."""

    def __init__(
        self, descriptor: int, *, repair: bool, until: float, monotonic: Callable[[], float]
    ) -> None:
        self.pages = 0
        self.overwritten = 0
        self._descriptor = descriptor
        self._repair = repair
        self._until = until
        self._monotonic = monotonic
        self._meta = self._newest()
        self._size = os.fstat(descriptor).st_size // self._meta.page_size
        # Touched pages alone take memory: the file may be sparse.
        self._used = bytearray(min(self._meta.last_page + 1, self._size))
        self._values: list[tuple[int, int]] = []

    def run(self) -> bool:
        """Walk everything; False: the time ran out."""
        try:
            self._tree(self._meta.main, self._value, fewest=2)
            self._tree(self._meta.free, self._free_pages, fewest=1, order=lmdb_pages.by_number)
            self._headers()
        except _OutOfTimeError:
            return False
        return True

    def _newest(self) -> Meta:
        first = lmdb_pages.read_meta(os.pread(self._descriptor, 4096, 0))
        second = lmdb_pages.read_meta(os.pread(self._descriptor, 4096, first.page_size))
        return max(first, second, key=lambda each: each.transaction)

    def _tree(
        self,
        tree: Database,
        visit: Callable[[Node], None],
        *,
        fewest: int,
        order: Order = lmdb_pages.by_bytes,
    ) -> None:
        """Every leaf stands at the same depth; `visit` receives their entries."""
        if tree.root == NO_PAGE:
            return
        if not 1 <= tree.depth <= _DEEPEST:
            raise PageError(f"a tree of {tree.depth} levels")
        waiting = [(tree.root, 1)]
        while waiting:
            number, level = waiting.pop()
            self._claim(number, 1)
            page = self._read(number, self._meta.page_size)
            if level < tree.depth:
                below = lmdb_pages.children(page, number, fewest=fewest, order=order)
                waiting += [(each, level + 1) for each in below]
                continue
            for node in lmdb_pages.entries(page, number, order=order):
                if node.first_page is not None:
                    count = lmdb_pages.pages_of(node.size, self._meta.page_size)
                    self._claim(node.first_page, count)
                    self._values.append((node.first_page, count))
                visit(node)

    def _value(self, node: Node) -> None:
        if node.database is not None:
            self._tree(node.database, self._value, fewest=2)

    def _free_pages(self, node: Node) -> None:
        """The pages that one transaction freed: their number, then each, descending."""
        value = node.value
        if node.first_page is not None:
            value = self._read(node.first_page, HEADER + node.size)[HEADER:]
        count, *numbers = struct.unpack(f"={len(value) // 8}Q", value) or (1,)
        if count > len(numbers):
            raise PageError("the list of free pages is malformed")
        before = self._meta.last_page + 1
        for number in numbers[:count]:
            if not 1 < number < before:
                raise PageError("the list of free pages is malformed")
            before = number
            if number < len(self._used):
                self._claim(number, 1)

    def _claim(self, number: int, count: int) -> None:
        """These pages have one use; two uses would overwrite each other."""
        self.pages += count
        if self.pages % _OFTEN < count and self._monotonic() > self._until:
            raise _OutOfTimeError
        end = number + count
        if end > self._meta.last_page + 1 or number < 2:
            raise PageError(f"page {number} does not exist")
        if end > len(self._used):
            raise PageError(f"it is cut off before page {number}")
        if any(self._used[number:end]):
            raise PageError(f"page {number} is used twice")
        self._used[number:end] = b"\1" * count

    def _headers(self) -> None:
        """In the order of the file, so that the disk reads ahead."""
        for at, (number, count) in enumerate(sorted(self._values)):
            if at % _OFTEN == 0 and self._monotonic() > self._until:
                raise _OutOfTimeError
            if lmdb_pages.is_overflow(self._read(number, HEADER), number, count):
                continue
            if not self._repair:
                raise PageError(f"page {number} has the number of another page")
            header = lmdb_pages.overflow_header(number, count)
            os.pwrite(self._descriptor, header, number * self._meta.page_size)
            self.overwritten += 1
        if self.overwritten:
            os.fsync(self._descriptor)

    def _read(self, number: int, size: int) -> bytes:
        content = os.pread(self._descriptor, size, number * self._meta.page_size)
        if len(content) < size:
            raise PageError(f"it is cut off within page {number}")
        return content
