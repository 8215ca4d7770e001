"""Between Kafka's records and ours, and the fences that keep a late owner's state from counting.

State topics are written by the owner of the same partition of another topic. A process that was stopped and wakes
up owns nothing any more but may have records on their way. So each new owner appends a fence, every state record
names its owner, and whoever reads state back passes over what an owner wrote after another one's fence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from aiokafka.structs import ConsumerRecord

from collector.log.port import CLOSINGS, SESSIONS, SPANS, TRACES, Headers, New, Position, Record

GUARDED: Mapping[str, tuple[str, str]] = {
    SESSIONS: ("scoring", TRACES),
    CLOSINGS: ("assembly", SPANS),
}
"""By state topic: the group and the topic whose owner writes it."""
OWNER = "spanwise_owner"
FENCE_KEY = b"\0spanwise.fence"


def state_behind(group: str, topic: str) -> str | None:
    """The topic that an owner of `topic` keeps its state in."""
    for state, guard in GUARDED.items():
        if guard == (group, topic):
            return state
    return None


def fence(topic: str, partition: int, owner: bytes) -> New:
    """From here on only `owner` writes to the partition."""
    return New(topic=topic, key=FENCE_KEY, value=owner, partition=partition)


def is_fence(topic: str, raw: ConsumerRecord) -> bool:
    """Not a record of anybody's."""
    return topic in GUARDED and raw.key == FENCE_KEY


def signed(new: New, owner: bytes) -> Headers:
    """The headers to write: on a state topic they name the owner."""
    return (*new.headers, (OWNER, owner)) if new.topic in GUARDED else new.headers


def record_of(topic: str, raw: ConsumerRecord) -> Record:
    """Ours; a tombstone has an empty value."""
    headers = tuple((name, value or b"") for name, value in raw.headers if name != OWNER)
    return Record(
        position=Position(topic, raw.partition, raw.offset),
        key=raw.key or b"",
        value=raw.value or b"",
        time=raw.timestamp / 1000,
        headers=headers,
    )


class Fenced:
    """Passes the records of a state topic that count, in their order. Other topics pass whole."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._owner: bytes | None = None

    def through(self, raws: Iterable[ConsumerRecord]) -> Iterator[Record]:
        """Leave out fences and what stands behind one that its writer did not set."""
        for raw in raws:
            if self._topic not in GUARDED:
                yield record_of(self._topic, raw)
            elif is_fence(self._topic, raw):
                self._owner = raw.value
            elif self._counts(raw):
                yield record_of(self._topic, raw)

    def _counts(self, raw: ConsumerRecord) -> bool:
        owner = next((value for name, value in raw.headers if name == OWNER), None)
        return self._owner is None or owner is None or owner == self._owner
