"""Reads comparisons with the past back from topic `windows` (`comparisons.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast

from collector.base.errors import Undecodable
from collector.log.consumer import PoisonReport
from collector.log.port import WINDOWS, Log, Record


class _Labelled(Protocol):
    @property
    def labels(self) -> tuple[str, ...]: ...


class _Part(_Labelled, Protocol):
    @property
    def name(self) -> int: ...
    @property
    def packed(self) -> bytes: ...


S = TypeVar("S", bound=_Labelled)
P = TypeVar("P", bound=_Part)


async def read_stored(
    log: Log,
    prefix: bytes,
    decode: Callable[[bytes], S | P],
    kind: type[S],
    restore: Callable[[S, Mapping[int, bytes]], None],
    poison: PoisonReport,
) -> None:
    """Give `restore` every state that the topic holds below keys that begin with `prefix`, each with its parts by name.

    `decode` reads a record, `kind` is the type of a state. A record that cannot be read is counted and named; without
    its state a comparison starts over.
    """
    newest: dict[bytes, Record] = {}
    for partition in range(log.partitions(WINDOWS)):
        async for record in log.replay(WINDOWS, partition):
            if record.key.startswith(prefix):
                newest[record.key] = record
    states: list[tuple[Record, S]] = []
    parts: dict[tuple[str, ...], dict[int, bytes]] = {}
    for record in newest.values():
        if not record.value:
            continue
        try:
            read = decode(record.value)
        except Undecodable as error:
            poison.unprocessable(record.position, error)
            continue
        if isinstance(read, kind):
            states.append((record, read))
        else:
            part = cast(P, read)
            parts.setdefault(part.labels, {})[part.name] = part.packed
    for record, state in states:
        try:
            restore(state, parts.get(state.labels, {}))
        except Undecodable as error:
            poison.unprocessable(record.position, error)
