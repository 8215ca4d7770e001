"""State by key in topic `windows`: a state store whose changelog a reader writes with its commits, and reads back.

Each key has one record, and all that must agree is in it. Larger parts of it may be records of their own: they are
written after the state and may be older than it, so the state says what they lack.

    change, change -> pending -> (write) -> written        a write that failed is in the next `pending`
                          change meanwhile                 waits for the next one
"""

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from collector.base.errors import Undecodable
from collector.log.consumer import PoisonReport
from collector.log.port import WINDOWS, Log, New, Record

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")
Parts = Mapping[int, bytes]
"""By name, what is large of a state."""


class _Written(NamedTuple):
    """What was made pending of a key."""

    due: Parts
    gone: frozenset[int]


class StateTable(Generic[K, S]):
    """One kind of state. Keys and states are what msgspec writes as msgpack, so no two keys share a record."""

    def __init__(
        self,
        kind: str,
        key: Any,
        state: Any,
        *,
        encode: Callable[[K], S | None],
        restore: Callable[[K, S, Parts], None],
        due: Callable[[K], Parts] = lambda _key: {},
        stored: Callable[[K, Parts], None] = lambda _key, _parts: None,
    ) -> None:
        """Of keys of type `key`, with states of type `state`.

        Args:
            kind: Begins the keys in the topic.
            key: As msgspec decodes it.
            state: As msgspec decodes it.
            encode: The state of a key now; None removes it.
            restore: Takes a state back with its parts, of which some may be older or missing; a ValueError makes the
                record poison.
            due: The parts that must be written now, so that the state stays small.
            stored: Told when the state, and after it these parts, are in the topic.
        """
        self._prefix = f"\0{kind}\0".encode()
        self._key = msgspec.msgpack.Decoder[tuple[int | None, K]](tuple[int | None, key])
        self._state = msgspec.msgpack.Decoder[S](state)
        self._encode, self._restore, self._due, self._stored = encode, restore, due, stored
        self.changed: dict[K, None] = {}
        """Keys whose records the topic lacks, in the order of their last change. What changes with every signal sets
        its key here itself: `change` is a call more."""
        self._writing: dict[K, _Written] = {}
        self._parts: dict[K, set[int]] = {}  # names of the parts that the topic may hold
        self._gone: dict[K, frozenset[int]] = {}  # names of the parts of a state that was forgotten

    def change(self, key: K) -> None:
        self.changed.pop(key, None)
        self.changed[key] = None

    def forget(self, key: K) -> None:
        """The key's state ended; one that begins under the same key has none of its parts."""
        self._gone[key] = self._gone.get(key, frozenset()) | self._parts.pop(key, set())
        if key in self._writing:
            self._gone[key] |= self._writing.pop(key).due.keys()
        self.change(key)

    def clear(self) -> None:
        """Forget what is not written: everything is read back."""
        for each in (self.changed, self._writing, self._parts, self._gone):
            each.clear()

    def pending(self) -> list[New]:
        """The records that the topic lacks, in the order of the write."""
        todo = [*(key for key in self._writing if key not in self.changed), *self.changed]
        self.changed.clear()
        self._writing = {}
        removed: list[New] = []
        states: list[New] = []
        parts: list[New] = []
        for key in todo:
            state = self._encode(key)
            due: Parts = {} if state is None else self._due(key)
            gone = self._gone.get(key, frozenset[int]()) - due.keys()
            self._writing[key] = _Written(due, gone)
            # The state is removed last: without it, parts that a crash left would be taken for those of a new one.
            removed += [New(topic=WINDOWS, key=self.key(key, name), value=None) for name in gone]
            (removed if state is None else states).append(self.record(key, state))
            # A part that is older than its state is brought up to date by it; the other way round it could not be.
            parts += [
                New(topic=WINDOWS, key=self.key(key, name), value=packed)
                for name, packed in due.items()
            ]
        return removed + states + parts

    def written(self) -> None:
        for key, (due, gone) in self._writing.items():
            left = self._gone.pop(key, frozenset()) - gone - due.keys()
            if left:
                self._gone[key] = left
            if due:
                self._parts.setdefault(key, set()).update(due)
            self._stored(key, due)
        self._writing = {}

    def record(self, key: K, state: S | None) -> New:
        """The record of a state, None to remove it."""
        value = None if state is None else msgspec.msgpack.encode(state)
        return New(topic=WINDOWS, key=self.key(key), value=value)

    def key(self, key: K, part: int | None = None) -> bytes:
        return self._prefix + msgspec.msgpack.encode((part, key))

    def holds(self, record: Record) -> bool:
        return record.key.startswith(self._prefix)

    def take_back(self, records: Iterable[Record], poison: PoisonReport) -> None:
        """Restore the newest record of each key, in the order of the topic; what cannot be read begins again."""
        states: list[tuple[Record, K]] = []
        parts: dict[K, dict[int, bytes]] = {}
        for record in records:
            try:
                part, key = self._key.decode(record.key[len(self._prefix) :])
            except (msgspec.MsgspecError, ValueError) as error:
                poison.unprocessable(record.position, Undecodable(str(error)))
                continue
            if part is None:
                states.append((record, key))
            else:
                parts.setdefault(key, {})[part] = record.value or b""
        for key, each in parts.items():
            self._parts[key] = set(each)
        for record, key in states:
            try:
                self._restore(key, self._state.decode(record.value or b""), parts.get(key, {}))
            except (msgspec.MsgspecError, ValueError, RecursionError, struct.error) as error:
                named = Undecodable(f"{self._prefix.decode().strip(chr(0))} {key}: {error}")
                poison.unprocessable(record.position, named)


async def read_back(log: Log, tables: Iterable[StateTable[Any, Any]], poison: PoisonReport) -> None:
    """Give each table, in this order, what the topic holds of it. A damaged record is counted and named."""
    newest: dict[bytes, Record] = {}
    tables = tuple(tables)
    for partition in range(log.partitions(WINDOWS)):
        async for record in log.replay(WINDOWS, partition):
            newest.pop(record.key, None)
            if record.value and any(each.holds(record) for each in tables):
                newest[record.key] = record
    for table in tables:
        table.take_back([each for each in newest.values() if table.holds(each)], poison)
