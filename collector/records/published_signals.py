"""The signals of several records of topic `signals`: their JSON in blocks, and each by itself for who asks for it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from collector.log.port import Record
from collector.records.signal_batch import Published, SignalGroup, groups_in, lines_of, signals_of


class LineBlock(NamedTuple):
    """Lines that follow one another, each the JSON of a signal and a line break."""

    lines: bytes
    signals: Sequence[Published]  # those whose lines they are


class PublishedSignals(Sequence[Published]):
    """The signals of records, in order. None is made by itself before somebody looks at one of its record's."""

    def __init__(self) -> None:
        self._parts: list[_OfRecord] = []
        self._count = 0
        self.oldest: float | None = None  # the first append time of a record; None: there is none

    def add(self, record: Record) -> None:
        """Behind the others. Raises Undecodable: it holds no signals; nothing was added."""
        part = _OfRecord(record, groups_in(record))
        self._parts.append(part)
        self._count += len(part)
        if self.oldest is None or record.time < self.oldest:
            self.oldest = record.time

    def blocks(self) -> Iterator[LineBlock]:
        return (LineBlock(part.lines(), part) for part in self._parts)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Published]:
        for part in self._parts:
            yield from part

    @overload
    def __getitem__(self, index: int) -> Published: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Published]: ...
    def __getitem__(self, index: int | slice) -> Published | Sequence[Published]:
        return [*self][index]


def line_blocks(signals: Sequence[Published]) -> Iterator[LineBlock]:
    if isinstance(signals, PublishedSignals):
        return signals.blocks()
    return (LineBlock(each.json + b"\n", (each,)) for each in signals)


class _OfRecord(Sequence[Published]):
    """The signals of one record, made when the first of them is looked at."""

    def __init__(self, record: Record, groups: Sequence[SignalGroup]) -> None:
        self._record = record
        self._groups = groups
        self._count = sum([len(group.headers) for group in groups])
        self._made: Sequence[Published] | None = None

    def lines(self) -> bytes:
        return lines_of(self._record, self._groups)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Published]:
        return iter(self[:])

    @overload
    def __getitem__(self, index: int) -> Published: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Published]: ...
    def __getitem__(self, index: int | slice) -> Published | Sequence[Published]:
        if self._made is None:
            self._made = signals_of(self._record, self._groups)
        return self._made[index]
