"""Kafka's records as the port's, and the fences that exclude the state records of a former owner.

State topics are written by the owner of the same partition of another topic. A process that was paused and resumes
owns no partition any more but may still have records in flight. So each new owner appends a fence, every state record
names its owner, and readers of state skip the records that an owner wrote after another owner's fence
(docs/decisions/013).
"""

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
    """The topic that holds the state of the owner of `topic`; None: it has none."""
    for state, guard in GUARDED.items():
        if guard == (group, topic):
            return state
    return None


def fence(topic: str, partition: int, owner: bytes) -> New:
    return New(topic=topic, key=FENCE_KEY, value=owner, partition=partition)


def is_fence(topic: str, raw: ConsumerRecord) -> bool:
    return topic in GUARDED and raw.key == FENCE_KEY


def signed(new: New, owner: bytes) -> Headers:
    return (*new.headers, (OWNER, owner)) if new.topic in GUARDED else new.headers


def record_of(topic: str, raw: ConsumerRecord) -> Record:
    """The port's record; a tombstone has an empty value."""
    headers = tuple((name, value or b"") for name, value in raw.headers if name != OWNER)
    return Record(
        position=Position(topic, raw.partition, raw.offset),
        key=raw.key or b"",
        value=raw.value or b"",
        time=raw.timestamp / 1000,
        headers=headers,
    )


class Fenced:
    """Filters the records of a state topic by its fences. Records of other topics all pass."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._owner: bytes | None = None

    def through(self, raws: Iterable[ConsumerRecord]) -> Iterator[Record]:
        """The records without the fences, and without those behind a fence that another owner set."""
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
