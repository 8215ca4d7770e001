"""The pages of an LMDB file (data version 1, 64 bits), as far as a check of its structure needs them.

    page 0, 1   meta: two, the newer transaction counts
    branch      header, pointers, nodes (key, number of a page below)
    leaf        header, pointers, nodes (key, value; or the number of the value's first page; or a database)
    overflow    header, then one value over adjacent pages

Source: mdb.c of LMDB 0.9. Nothing here trusts a number that it reads.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8
HEADER = 16
NO_PAGE = (1 << 64) - 1
"""The root of an empty database."""
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BIG, _DATABASE = 1, 2
_page = struct.Struct("=QHHHH")
_overflow = struct.Struct("=QHHI")
_meta = struct.Struct("=IIQQ")
_database = struct.Struct("=IHHQQQQQ")
_node = struct.Struct("=HHHH")
_longest_key = 511

Order: TypeAlias = Callable[[bytes], Any]
"""What the keys of a tree ascend by."""


def by_bytes(key: bytes) -> bytes:
    """The order of every tree but one."""
    return key


def by_number(key: bytes) -> int:
    """The order of the tree of free pages: a key is the number of a transaction, as this machine writes it.

    Raises:
        PageError: it is not one.
    """
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
    """One entry of a leaf."""

    value: bytes
    """Of a value on pages of its own, empty."""
    database: Database | None
    first_page: int | None
    """Of a value on pages of its own."""
    size: int


def read_meta(page: bytes) -> Meta:
    """A meta page, of any page size.

    Raises:
        PageError: it is not one.
    """
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


def children(page: bytes, number: int, *, fewest: int, order: Order = by_bytes) -> list[int]:
    """The page numbers below a branch page of a tree whose keys ascend by `order`.

    Raises:
        PageError: it is not branch page `number`, or has less than `fewest` entries.
    """
    below: list[int] = []
    for at in _nodes(page, number, BRANCH, fewest, order):
        low, high, highest, _ = _node.unpack_from(page, at)
        below.append(low | high << 16 | highest << 32)
    return below


def entries(page: bytes, number: int, *, order: Order = by_bytes) -> Iterator[Node]:
    """The entries of a leaf of a tree whose keys ascend by `order`.

    Raises:
        PageError: it is not leaf page `number`.
    """
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


def pages_of(size: int, page_size: int) -> int:
    """How many adjacent pages a value of `size` bytes has."""
    return (HEADER - 1 + size) // page_size + 1


def overflow_header(number: int, pages: int) -> bytes:
    """The header of a value's first page."""
    return _overflow.pack(number, 0, OVERFLOW, pages)


def is_overflow(header: bytes, number: int, pages: int) -> bool:
    """Whether this is the header of such a page; its second field means nothing there."""
    found, _, flags, count = _overflow.unpack(header)
    return (found, flags, count) == (number, OVERFLOW, pages)


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
