"""Whatever is written, committed, released and reopened: a log holds what a dictionary says it holds."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from collector.log.memory import MemoryLog
from collector.log.port import (
    CLOSINGS,
    COMPACTED,
    SESSIONS,
    SIGNALS,
    SPANS,
    TRACES,
    Commit,
    Log,
    New,
    Position,
)
from tests.support.clocks import SetClock
from tests.support.examples import examples
from tests.support.log_steps import assigned

PARTITIONS = 2
TOPICS = (SPANS, CLOSINGS, TRACES, SESSIONS, SIGNALS)
GROUPS = {
    SPANS: frozenset({"assembly"}),
    TRACES: frozenset({"scoring"}),
    SIGNALS: frozenset({"sink.a", "sink.b"}),
}
HOLDERS = [(group, topic) for topic, groups in GROUPS.items() for group in sorted(groups)]

TopicPartition = tuple[str, int]


class Put(NamedTuple):
    """One call."""

    records: list[New]
    commit: Commit | None


@dataclass(frozen=True)
class Release:
    offset: int
    partition: int


@dataclass(frozen=True)
class Reopen:
    jump: float
    """By how much the clock has moved meanwhile."""


Step = Put | Release | Reopen


def record(topic: str, partition: int, key: int, size: int, count: int, fill: int) -> New:
    """`size` -1: a tombstone, on a compacted topic, where a record takes one offset."""
    is_compacted = topic in COMPACTED
    value = None if size < 0 and is_compacted else (b"%d" % fill * size)[: max(size, 0)]
    return New(
        topic=topic,
        key=b"k%d" % key,
        value=value,
        partition=partition,
        count=1 if is_compacted else count,
    )


def commit(holder: tuple[str, str], partition: int, offset: int, metadata: int | None) -> Commit:
    group, topic = holder
    metadata = metadata if topic == SPANS else None
    return Commit(group=group, topic=topic, partition=partition, offset=offset, metadata=metadata)


partitions, offsets = st.integers(0, PARTITIONS - 1), st.integers(0, 12)
records = st.builds(
    record,
    st.sampled_from(TOPICS),
    partitions,
    st.integers(0, 4),
    st.sampled_from([-1, 0, 10, 2030, 4060, 4070, 9000, 50_000]),
    st.sampled_from([1, 1, 2, 5]),
    st.integers(0, 5),
)
commits = st.builds(commit, st.sampled_from(HOLDERS), partitions, offsets, st.none() | offsets)
put_steps = st.builds(Put, st.lists(records, max_size=6), st.none() | commits)
steps = st.lists(
    st.one_of(
        put_steps,
        put_steps,
        st.builds(Release, offsets, partitions),
        st.builds(Reopen, st.sampled_from([-500.0, 0.0, 1.5])),
    ),
    max_size=25,
)


@dataclass
class Model:
    keeps_spans: bool
    """They stay until their room is needed, which it is not here."""
    records: dict[TopicPartition, dict[int, tuple[bytes, bytes]]] = field(
        default_factory=dict[TopicPartition, dict[int, tuple[bytes, bytes]]]
    )
    end_offsets: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    commits: dict[tuple[str, str, int], tuple[int, int | None]] = field(
        default_factory=dict[tuple[str, str, int], tuple[int, int | None]]
    )

    def put(self, records: Sequence[New], commit: Commit | None) -> list[Position]:
        positions = [self._append(record) for record in records]
        if commit is not None:
            self._commit(commit)
        self._trim()
        return positions

    def release(self, position: Position) -> None:
        if not self.keeps_spans:
            self.records.get(position[:2], {}).pop(position.offset, None)

    def _append(self, new: New) -> Position:
        assert new.partition is not None
        topic_partition = (new.topic, new.partition)
        held = self.records.setdefault(topic_partition, {})
        offset = self.end_offsets.get(topic_partition, 0) + new.count - 1
        self.end_offsets[topic_partition] = offset + 1
        if new.topic in COMPACTED:
            for old in [o for o, (key, _) in held.items() if key == new.key]:
                del held[old]
        if isinstance(new.value, bytes) and (new.value or new.topic not in COMPACTED):
            held[offset] = (new.key, new.value)
        return Position(*topic_partition, offset)

    def _commit(self, commit: Commit) -> None:
        at = (commit.group, commit.topic, commit.partition)
        offset, metadata = self.commits.get(at, (-1, None))
        if commit.offset >= offset:
            if commit.metadata is not None:
                metadata = max(commit.metadata, metadata or 0)
            self.commits[at] = (commit.offset, metadata)

    def _trim(self) -> None:
        for partition in range(PARTITIONS):
            for topic in (SIGNALS,) if self.keeps_spans else (SPANS, SIGNALS):
                low = min(
                    self.commits.get((g, topic, partition), (0, None))[0] for g in GROUPS[topic]
                )
                self._cut((topic, partition), low)
            metadata = self.commits.get(("assembly", SPANS, partition), (0, None))[1]
            self._cut((CLOSINGS, partition), metadata or 0)

    def _cut(self, topic_partition: TopicPartition, low: int) -> None:
        held = self.records.get(topic_partition, {})
        for offset in [o for o in held if o < low]:
            del held[offset]


Open = Callable[[], Awaitable[Log]]


async def compare(log: Log, model: Model) -> None:
    await log.write([])  # what was released goes with the next transaction
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            records = [record async for record in log.replay(topic, partition)]
            expected = model.records.get((topic, partition), {})
            assert {r.position.offset: (r.key, r.value) for r in records} == expected
            assert [r.position.offset for r in records] == sorted(expected)
            times = [r.time for r in records]
            assert times == sorted(times)
    for group, topic in HOLDERS:
        reader = log.read(group, topic)
        for partition, mine in (await assigned(reader)).items():
            stored = model.commits.get((group, topic, partition), (None, None))
            assert (mine.offset, mine.metadata) == stored
        await reader.close()


async def run(script: Sequence[Step], open_log: Open, clock: SetClock, *, durable: bool) -> None:
    model = Model(keeps_spans=durable)
    log = await open_log()
    newest = 0.0
    try:
        for step in script:
            clock.now += 0.25
            if isinstance(step, Put):
                written = await log.write(step.records, [step.commit] if step.commit else [])
                assert list(written) == model.put(*step)
            elif isinstance(step, Release):
                position = Position(SPANS, step.partition, step.offset)
                log.release([position])
                model.release(position)
                await log.write([])
            elif durable:
                await compare(log, model)
                await log.close()
                clock.now += step.jump
                log = await open_log()
                newest = await _newest(log, newest)
        await compare(log, model)
    finally:
        await log.close()


async def _newest(log: Log, newest: float) -> float:
    """Write a record and check that log time went on."""
    (position,) = await log.write([New(topic="windows", key=b"w", value=b"w")])
    record = await log.get(position)
    assert record is not None
    assert record.time >= newest
    return record.time


@settings(max_examples=examples(60), deadline=None)
@given(steps)
def test_the_memory_log_holds_what_the_model_holds(script: Sequence[Step]) -> None:
    clock = SetClock()

    async def open_log() -> Log:
        return MemoryLog(clock=clock, partitions=PARTITIONS, groups=GROUPS)

    asyncio.run(run(script, open_log, clock, durable=False))


@settings(max_examples=examples(60), deadline=None)
@given(steps)
def test_the_disk_log_holds_what_the_model_holds(script: Sequence[Step]) -> None:
    clock = SetClock()
    with tempfile.TemporaryDirectory() as folder:

        async def open_log() -> Log:
            return await DiskLog.open(
                Path(folder),
                max_size=64 << 20,
                clock=clock,
                telemetry=Telemetry(),
                groups=GROUPS,
                partitions=PARTITIONS,
            )

        asyncio.run(run(script, open_log, clock, durable=True))
