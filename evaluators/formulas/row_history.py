"""Rows of numbers of the newest sessions or traces of one agent, in the order in which they closed. Pure."""

import hashlib
import struct
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import ClassVar

Row = tuple[int, ...]
_MOST = (1 << 32) - 1  # greater numbers count as this one


class RowHistory:
    """Subjects (sessions, traces) go by numbers of 64 bits; a row takes 8 bytes and 4 for each of its numbers."""

    MOST: ClassVar[int]  # newest subjects that are remembered
    LEAST: ClassVar[int]  # other subjects below which it is not known what is usual
    ROW: ClassVar[int] = 1  # numbers of a row

    def __init__(self, packed: bytes = b"") -> None:
        """`packed`: as `pack` gave it. Raises ValueError: it was not."""
        row = self.ROW
        count, rest = divmod(len(packed), 8 + 4 * row)
        if rest:
            raise ValueError("not a history of rows")
        self._subjects = array("Q", struct.unpack_from(f"<{count}Q", packed))
        self._rows = array("I", struct.unpack_from(f"<{count * row}I", packed, 8 * count))
        self._sorted = [array("I", sorted(self._rows[n::row])) for n in range(row)]
        self._terms = sum(_term(each, self._row(at)) for at, each in enumerate(self._subjects))

    def __len__(self) -> int:
        return len(self._subjects)

    def __iter__(self) -> Iterator[int]:
        return iter(self._subjects)

    def pack(self) -> bytes:
        counts = f"<{len(self._subjects)}Q{len(self._rows)}I"
        return struct.pack(counts, *self._subjects, *self._rows)

    def digest(self, subject: int) -> str:
        """Of the other subjects and their rows, whatever their order."""
        own = self._own(subject)
        return f"{self._terms - (0 if own is None else _term(subject, own)):x}"

    def put(self, subject: int, row: Row) -> None:
        """A subject has closed; one that closed before is replaced, and the oldest above MOST is forgotten."""
        self.drop(subject)
        if len(self._subjects) >= self.MOST:
            self.drop(self._subjects[0])
        row = self.capped(row)
        self._subjects.append(subject)
        self._rows.extend(row)
        for values, value in zip(self._sorted, row, strict=True):
            insort(values, value)
        self._terms += _term(subject, row)

    def drop(self, subject: int) -> None:
        """Forget a subject; an unknown one is not an error."""
        at = self._find(subject)
        if at is None:
            return
        row = self._row(at)
        del self._subjects[at]
        del self._rows[at * self.ROW : (at + 1) * self.ROW]
        for values, value in zip(self._sorted, row, strict=True):
            del values[bisect_left(values, value)]
        self._terms -= _term(subject, row)

    def median(self, subject: int, column: int = 0) -> float | None:
        """Of the other subjects; None: there are fewer than LEAST of them."""
        own = self._own(subject)
        values = self._sorted[column]
        rest = len(values) - (own is not None)
        at = len(values) if own is None else bisect_left(values, own[column])

        def nth(index: int) -> int:
            return values[index + (index >= at)]

        if rest < self.LEAST:
            return None
        return nth(rest // 2) if rest % 2 else (nth(rest // 2 - 1) + nth(rest // 2)) / 2

    @staticmethod
    def capped(row: Row) -> Row:
        return tuple(min(value, _MOST) for value in row)

    def _own(self, subject: int) -> Row | None:
        at = self._find(subject)
        return None if at is None else self._row(at)

    def _find(self, subject: int) -> int | None:
        try:
            return self._subjects.index(subject)
        except ValueError:
            return None

    def _row(self, at: int) -> Row:
        return tuple(self._rows[at * self.ROW : (at + 1) * self.ROW])


def _term(subject: int, row: Row) -> int:
    content = struct.pack(f"<Q{len(row)}I", subject, *row)
    return int.from_bytes(hashlib.sha256(content).digest())
