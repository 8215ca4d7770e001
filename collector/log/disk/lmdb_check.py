"""The structure of an LMDB file, checked before LMDB maps it.

LMDB trusts its pages: one that is cut off or overwritten ends the process by a signal, or lets a write give pages away
that hold something. So every page of the trees is read here first, and where each value begins. The content of values
is not looked at: its owner has to.
"""

import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from collector.base.errors import DataDamaged

# The pages of an LMDB file (data version 1, 64 bits), as far as a check of its structure needs them.
#
#     page 0, 1   meta: two, the newer transaction counts
#     branch      header, pointers, nodes (key, number of a page below)
#     leaf        header, pointers, nodes (key, value; or the number of the value's first page; or a database)
#     overflow    header, then one value over adjacent pages
#
# Source: mdb.c of LMDB 0.9. Nothing here trusts a number that it reads.

BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8
HEADER = 16
NO_PAGE = (1 << 64) - 1
"""The root of an empty database."""
_MAGIC, _VERSION = 0xBEEFC0DE, 1  # of the first page (mdb.c)
_BIG, _DATABASE = 1, 2  # flags of a leaf entry (mdb.c)
_page = struct.Struct("=QHHHH")
_overflow = struct.Struct("=QHHI")
_meta = struct.Struct("=IIQQ")
_database = struct.Struct("=IHHQQQQQ")
_node = struct.Struct("=HHHH")
_longest_key = 511

Order = Callable[[bytes], Any]
"""What the keys of a tree ascend by: `bytes`, themselves, but of free pages."""


def by_number(key: bytes) -> int:
    """The number of a transaction, as this machine writes it. Raises PageError: it is not one."""
    if len(key) != 8:
        raise PageError("the list of free pages is malformed")
    return int.from_bytes(key, sys.byteorder)


class PageError(ValueError):
    """A page that is not what it should be."""


class Database(NamedTuple):
    """A B-tree: the number of its root page, and how many levels it has."""

    root: int
    depth: int


class Meta(NamedTuple):
    """What a transaction left: where everything begins."""

    page_size: int
    free: Database
    main: Database
    last_page: int
    transaction: int


class Node(NamedTuple):
    value: bytes  # of a value on pages of its own, empty
    database: Database | None
    first_page: int | None  # of a value on pages of its own
    size: int


def read_meta(page: bytes) -> Meta:
    """A meta page, of any page size. Raises PageError: it is not one."""
    try:
        magic, version, _, _ = _meta.unpack_from(page, HEADER)
        at = HEADER + _meta.size
        free, main = _database.unpack_from(page, at), _database.unpack_from(page, at + 48)
        last_page, transaction = struct.unpack_from("=QQ", page, at + 96)
    except struct.error as error:
        raise PageError("it ends within its first pages") from error
    if (magic, version) != (_MAGIC, _VERSION):
        raise PageError("it does not begin as an LMDB file does")
    size = free[0]
    if not 256 <= size <= 65536 or size & size - 1:
        raise PageError(f"its pages would have {size} bytes")
    return Meta(
        size, Database(free[-1], free[2]), Database(main[-1], main[2]), last_page, transaction
    )


def children(page: bytes, number: int, *, fewest: int, order: Order) -> list[int]:
    """The page numbers below a branch page of a tree whose keys ascend by `order`.

    Raises PageError: it is not branch page `number`, or has less than `fewest` entries.
    """
    below: list[int] = []
    for at in _nodes(page, number, BRANCH, fewest, order):
        low, high, highest, _ = _node.unpack_from(page, at)
        below.append(low | high << 16 | highest << 32)
    return below


def entries(page: bytes, number: int, *, order: Order) -> Iterator[Node]:
    """The entries of a leaf of a tree whose keys ascend by `order`. Raises PageError: it is not leaf page `number`."""
    for at in _nodes(page, number, LEAF, 1, order):
        low, high, flags, key = _node.unpack_from(page, at)
        size, begin = low | high << 16, at + _node.size + key
        stored = 8 if flags & _BIG else size
        if flags not in (0, _BIG, _DATABASE) or begin + stored > len(page):
            raise PageError(f"page {number} holds a malformed entry")
        if flags == _BIG:
            (first,) = struct.unpack_from("=Q", page, begin)
            yield Node(b"", None, first, size)
            continue
        value = page[begin : begin + size]
        database = None
        if flags == _DATABASE:
            if size != _database.size:
                raise PageError(f"page {number} holds a malformed database")
            fields = _database.unpack(value)
            database = Database(fields[-1], fields[2])
        yield Node(value, database, None, size)


def _nodes(page: bytes, number: int, kind: int, fewest: int, order: Order) -> Iterator[int]:
    """Where each entry begins; its header and key lie within the page, and the keys ascend."""
    found, _, flags, lower, upper = _page.unpack_from(page)
    if (found, flags) != (number, kind):
        raise PageError(f"page {number} has the number of another page")
    count = (lower - HEADER) // 2
    if not (HEADER <= lower <= upper <= len(page)) or lower % 2 or upper % 2 or count < fewest:
        raise PageError(f"page {number} has no room for its entries")
    before: Any = None
    for place, at in enumerate(struct.unpack_from(f"={count}H", page, HEADER)):
        if at < upper or at % 2 or at + _node.size > len(page):
            raise PageError(f"page {number} points beyond itself")
        key = _node.unpack_from(page, at)[3]
        name = page[at + 8 : at + 8 + key]
        if len(name) < key or key > _longest_key:
            raise PageError(f"page {number} has a key that is too long")
        if place >= (kind == BRANCH):  # the first key of a branch page means nothing
            rank = order(name)
            if before is not None and rank <= before:
                raise PageError(f"page {number} has keys out of order")
            before = rank
        yield at


MAX_SECONDS = 10.0
"""What a check takes at most: about five million pages, 20 GiB, if they need not come from a slow disk."""
_OFTEN = 512
_DEEPEST = 32
"""Levels of a tree, as LMDB has it."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    pages: int
    overwritten: int
    """Values whose first page was overwritten: its header is right again, the value is not."""
    is_whole: bool  # False: the time ran out


def check(folder: Path, *, monotonic: Callable[[], float] = time.monotonic) -> CheckedFile:
    """Read every page of `data.mdb` that its trees need; a folder without one is sound.

    The header of a value's first page is written again where it was overwritten: else LMDB would give pages away when
    the value is deleted. `folder`: of the environment; no process has it open. `monotonic`: seconds that never jump.
    Raises DataDamaged: the file is cut off, or LMDB could not walk it. Raises OSError: it cannot be read.
    """
    path = folder / "data.mdb"
    if not path.is_file() or not path.stat().st_size:
        return CheckedFile(0, 0, is_whole=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        walk = _FileWalk(descriptor, monotonic)
        is_whole = walk.run()
    except (PageError, struct.error) as error:
        raise DataDamaged(f"{path} is damaged: {error}") from error
    finally:
        os.close(descriptor)
    return CheckedFile(walk.pages, walk.overwritten, is_whole)


class _OutOfTimeError(Exception):
    """The check is given up."""


class _FileWalk:
    def __init__(self, descriptor: int, monotonic: Callable[[], float]) -> None:
        self.pages = 0
        self.overwritten = 0
        self._descriptor = descriptor
        self._monotonic = monotonic
        self._until = monotonic() + MAX_SECONDS
        self._meta = self._newest()
        self._size = os.fstat(descriptor).st_size // self._meta.page_size
        # Touched pages alone take memory: the file may be sparse.
        self._used = bytearray(min(self._meta.last_page + 1, self._size))
        self._values: list[tuple[int, int]] = []

    def run(self) -> bool:
        """Walk everything; False: the time ran out."""
        try:
            self._tree(self._meta.main, self._value)
            self._tree(self._meta.free, self._free_pages, fewest=1, order=by_number)
            self._headers()
        except _OutOfTimeError:
            return False
        return True

    def _newest(self) -> Meta:
        first = read_meta(os.pread(self._descriptor, 4096, 0))
        second = read_meta(os.pread(self._descriptor, 4096, first.page_size))
        return max(first, second, key=lambda each: each.transaction)

    def _tree(
        self,
        tree: Database,
        visit: Callable[[Node], None],
        *,
        fewest: int = 2,
        order: Order = bytes,
    ) -> None:
        """Every leaf is at the same depth; `visit` receives their entries."""
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
                below = children(page, number, fewest=fewest, order=order)
                waiting += [(each, level + 1) for each in below]
                continue
            for node in entries(page, number, order=order):
                if node.first_page is not None:
                    count = (HEADER - 1 + node.size) // self._meta.page_size + 1
                    self._claim(node.first_page, count)
                    self._values.append((node.first_page, count))
                visit(node)

    def _value(self, node: Node) -> None:
        if node.database is not None:
            self._tree(node.database, self._value)

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
            found, _, *rest = _overflow.unpack(self._read(number, HEADER))  # `_` means nothing here
            if [found, *rest] != [number, OVERFLOW, count]:
                header = _overflow.pack(number, 0, OVERFLOW, count)
                os.pwrite(self._descriptor, header, number * self._meta.page_size)
                self.overwritten += 1
        if self.overwritten:
            os.fsync(self._descriptor)

    def _read(self, number: int, size: int) -> bytes:
        content = os.pread(self._descriptor, size, number * self._meta.page_size)
        if len(content) < size:
            raise PageError(f"it is cut off within page {number}")
        return content
