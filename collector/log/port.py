"""The Log port: records in order, by partition and key, read by groups that commit. Adapters: disk, memory, Kafka.

Contract (`tests/support/log_contract.py` holds every adapter to it):

- `write` appends the records in order, then stores the commits; atomic where the adapter can (disk: one
  transaction), else in exactly this order. It returns when everything is durable.
- A record's `time` is its append time by the log's clock and never decreases within a partition.
- Offsets grow within a partition; gaps mean nothing.
- A record takes `count` offsets and is at the last of them, so that lag and losses are counted in what it holds.
  A shared log takes records of one offset only.
- A reader sees the records of its partitions in order, from its group's commit, or from the oldest record.
- Compacted topics keep the newest record per key; a tombstone (value None) removes the key.
"""

import struct
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

SPANS, CLOSINGS, TRACES, SESSIONS, SIGNALS, WINDOWS, FEEDBACK = TOPICS = (
    "spans",
    "closings",
    "traces",
    "sessions",
    "signals",
    "windows",
    "feedback",
)
LOG_REQUESTS = "logs"
"""Requests of log records that others write: on Kafka alone."""
KAFKA_TOPICS = (*TOPICS, LOG_REQUESTS)
COMPACTED = frozenset({SESSIONS, WINDOWS})

MAX_RECORD = 20 << 20
"""Bytes of the largest record in any log: key, value and headers together, on Kafka its own bytes too."""
MAX_COUNT = 4096  # offsets that one record takes at most
BACKGROUND_LINGER = 0.25
"""The `linger` of background readers, in seconds: fewer and larger batches, commits and syncs of the disk."""

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_WORD = 0xFFFFFFFF
"""Of murmur2, as Kafka's default partitioner uses it: its seed, its multiplier, and 32 bits."""

Headers = tuple[tuple[str, bytes], ...]
Range = tuple[int, int, int, int]
"""Bytes of a record's value: partition, offset, from, below."""


class Position(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


class New(msgspec.Struct, frozen=True, kw_only=True):
    """A record to be written. `partition` None: `partition_of` its key."""

    topic: str
    key: bytes
    value: bytes | Callable[[Position], bytes] | None
    """A function receives the position of the record right before it in the same call, one of a topic that the call
    named earlier. None, or nothing, is a tombstone on compacted topics."""
    partition: int | None = None
    headers: Headers = ()
    count: int = 1
    """How many offsets it takes, at most MAX_COUNT; above 1 only where the log `counts_offsets`, and on no
    compacted topic."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was read. `time` is the log's append time, unix seconds."""

    position: Position
    key: bytes
    value: bytes
    time: float
    headers: Headers = ()
    count: int = 1  # how many offsets it takes; `position` is the last of them

    @property
    def first(self) -> int:
        """The first of its offsets."""
        return self.position.offset - self.count + 1

    @property
    def size(self) -> int:
        """Bytes of key, value and headers; a store adds its own."""
        size = len(self.key) + len(self.value) + 4 * (self.count > 1)
        for name, value in self.headers:
            size += len(name) + len(value) + 8
        return size

    @property
    def is_tombstone(self) -> bool:
        """Whether it removes its key."""
        return not self.value and self.position.topic in COMPACTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`group` is done with every record of the partition below `offset`."""

    group: str
    topic: str
    partition: int
    offset: int
    metadata: int | None = None
    """A second offset that the group stores beside its own and gets back in `Assigned`; None leaves it as it is.
    Assembly, on `spans`: the offset in the same partition of `closings` from which marks still matter; below it the
    log may delete them. Prometheus, on `signals`: the offset below which signals are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A partition that this reader now owns, with its group's commit. No commit: it begins at the oldest record."""

    partition: int
    offset: int | None
    metadata: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One poll: first what was revoked, then what was assigned, then records in order, then the ends.

    Records of a partition assigned in this batch are delivered from the next poll on, so that the owner can read its
    state back first.
    """

    revoked: tuple[int, ...] = ()
    assigned: tuple[Assigned, ...] = ()
    records: Sequence[Record] = ()
    ends: Mapping[int, float] = field(default_factory=dict[int, float])
    """Partitions at whose end the reader is after these records, and the log time until which no older record can
    still come (disk: now; Kafka: now - 2 s). Only such a partition may be ticked by the clock."""
    lost: Mapping[int, int] = field(default_factory=dict[int, int])
    """By partition: offsets of records that expired since the last poll (or the commit) before this group had read
    them."""


class Reader(Protocol):
    """One group's view of a topic. Owned by one task."""

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        """Wait up to `timeout` seconds for something; may return an empty batch with its `ends`."""
        ...

    async def close(self) -> None:
        """Give the partitions back, without a commit."""
        ...


class Lag(NamedTuple):
    """What a group has left to do in a topic."""

    records: int = 0  # that it has not read, or has not finished, each by its `count`
    oldest: float | None = None
    """Append time of the first of them, unix seconds; None: nothing waits."""


class Log(Protocol):
    counts_offsets: bool
    """Whether it takes records of several offsets; else each thing is a record of its own."""
    reads_parts: bool
    """Whether `values_of` reads parts of records; else what refers to parts holds copies of them instead."""

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        """Append in order, then commit.

        Raises:
            LogFull: the topic's share is used up; nothing was written; try again later.
            LogUnavailable: the log cannot be written to now; the records may be written or not.
            RecordTooLarge: a record can never be written.
        """
        ...

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> Reader:
        """A reader for `group`. One reader per (group, topic) and process.

        `linger` is a hint: seconds that a record may wait for others to be read with it.
        """
        ...

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        """Every record from offset `since` (None: the oldest) to the end as it stood when the call was made."""
        ...

    async def get(self, position: Position) -> Record | None:
        """One record; None when it has expired."""
        ...

    async def values_of(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        """Parts of records without the rest. None: the record has expired, or is damaged or shorter.

        Raises LogUnavailable: the log cannot be read now.
        """
        ...

    def release(self, positions: Iterable[Position]) -> None:
        """Hint: these records are no longer needed, though the commit has not passed them."""
        ...

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        ...

    async def end(self, topic: str, partition: int) -> int:
        """The offset of the partition's next record. Raises LogUnavailable: it cannot be said now."""
        ...

    async def backlog(self, group: str, topic: str) -> int:
        """How many records (each by its `count`) are above the group's commit, all partitions together."""
        ...

    async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag | None:
        """What waits for the group; None: another process can say it, or none.

        A log of one process answers for any group, one that no room reads for too. A shared log answers for the
        partitions that this process has, or for all while the group has no member.

        Args:
            group: The group.
            topic: What it reads.
            unread: Count from where this process's reader is, for a group whose commit stays behind what it
                has taken in. Without a reader, and by default, from the commit.

        Raises:
            LogUnavailable: it cannot be said now.
        """
        ...

    def begin_shutdown(self) -> None:
        """The process stops: from now on no call waits long for a server. Reading and writing go on until `close`."""
        ...

    async def close(self) -> None:
        """Flush and release the log's resources. Readers end."""
        ...


def partition_of(key: bytes, partitions: int) -> int:
    """The partition, 0 to `partitions` - 1, of a record with this key, the same in every log.

    Kafka's default partitioner (org.apache.kafka.clients.producer): `(murmur2(key) & 0x7fffffff) % partitions`.
    """
    if partitions == 1:
        return 0
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(key: bytes) -> int:
    """The 32-bit MurmurHash2 of `key`, unsigned."""
    whole = len(key) & ~3
    digest = _SEED ^ len(key)
    for (word,) in struct.iter_unpack("<I", key[:whole]):
        word = word * _MIX & _WORD  # noqa: PLW2901 - the word is mixed in place, as the paper has it
        word = (word ^ word >> 24) * _MIX & _WORD  # noqa: PLW2901
        digest = digest * _MIX & _WORD ^ word
    if whole != len(key):
        digest = (digest ^ int.from_bytes(key[whole:], "little")) * _MIX & _WORD
    digest = (digest ^ digest >> 13) * _MIX & _WORD
    return digest ^ digest >> 15
