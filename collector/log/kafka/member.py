"""One membership in a consumer group: what it owns, what it must tell its room, what it may commit.

A rebalance takes every partition away and gives some back. It waits, within bounds, until the room asks for its next
batch: by then what the room had in hand is written and committed, and the next owner repeats nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from collector.errors import LogUnavailable
from collector.kafka.client import ended
from collector.log.commits import Committed, later_metadata
from collector.log.kafka.cluster import Link
from collector.log.port import Commit

REBALANCE = 30.0
"""Seconds that a rebalance waits for members that live."""
_log = logging.getLogger(__name__)


class Member(ConsumerRebalanceListener):
    """A consumer in its group. Owned by one reader."""

    def __init__(self, link: Link, group: str, topic: str) -> None:
        self._link = link
        self._group = group
        self._name = link.name(topic)
        self.news = asyncio.Event()
        """Something to tell the room."""
        self.untold: set[int] = set()
        """Taken away, and the room does not know yet."""
        self.coming: set[int] | None = None
        """Given, and the room does not know yet."""
        self.owned: set[int] = set()
        """What the room works on: only this may be committed."""
        self.committed: dict[int, Committed] = {}
        self.seen: dict[int, tuple[int, float]] = {}
        """By partition: the offset after the newest record, and our clock before the broker was asked for it."""
        self._told = asyncio.Event()
        self._patience = link.settings.session_timeout / 2
        session = int(link.settings.session_timeout * 1000)
        self.consumer = AIOKafkaConsumer(
            **link.client,
            group_id=link.group(group),
            group_instance_id=link.settings.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=(RangePartitionAssignor,),
            session_timeout_ms=session,
            heartbeat_interval_ms=max(100, session // 4),
            rebalance_timeout_ms=max(session, int(REBALANCE * 1000)),
        )

    async def start(self) -> None:
        """Connect and begin to join."""
        await self.consumer.start()
        self._watch()
        self.consumer.subscribe([self._name], listener=self)

    async def stop(self, seconds: float) -> None:
        """Leave the group, within that time."""
        self._told.set()
        # In a task of its own: it may end in a `CancelledError` that nobody asked for.
        await ended(asyncio.create_task(self.consumer.stop()), seconds)

    def place(self, partition: int) -> TopicPartition:
        """Kafka's name of the partition."""
        return TopicPartition(self._name, partition)

    # --- rebalances ----------------------------------------------------------------------------------------------

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Called by aiokafka; commits still count until this returns."""
        self.coming = None
        if not self.owned:
            return
        self.untold = set(self.owned)
        self._told.clear()
        self.news.set()
        try:
            async with asyncio.timeout(self._patience):
                await self._told.wait()
        except TimeoutError:
            _log.warning(
                "`%s` was busy when its partitions went; they may be repeated", self._group
            )
        self.owned.clear()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Called by aiokafka."""
        self.coming = {each.partition for each in assigned}
        self.seen.clear()
        self.news.set()

    def tell(self) -> tuple[int, ...]:
        """What the room must drop now."""
        gone, self.untold = tuple(sorted(self.untold)), set()
        self.owned.clear()
        self._told.set()
        return gone

    def hand_over(self, starts: Mapping[int, int]) -> None:
        """The room takes these partitions, from these offsets."""
        for partition, offset in starts.items():
            self.consumer.seek(self.place(partition), offset)
        self.owned = set(starts)
        self.coming = None

    # --- commits -------------------------------------------------------------------------------------------------

    async def read_commits(self, partitions: Iterable[int]) -> dict[int, Committed]:
        """The group's commits; no entry: none yet."""
        places = [self.place(each) for each in partitions]
        found = await self.consumer._coordinator.fetch_committed_offsets(places)  # noqa: SLF001
        return {
            place.partition: Committed(each.offset, decode_metadata(each.metadata))
            for place, each in found.items()
        }

    async def commit(self, commits: Sequence[Commit]) -> None:
        """Store those of owned partitions; others are another owner's.

        Raises:
            LogUnavailable: no answer in time; they may be stored.
        """
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        stored: dict[int, Committed] = {}
        for commit in commits:
            if commit.partition not in self.owned:
                continue
            old = stored.get(commit.partition, self.committed.get(commit.partition, Committed()))
            new = advanced(old, commit)
            if new != old and new.offset is not None:
                stored[commit.partition] = new
                offsets[self.place(commit.partition)] = OffsetAndMetadata(
                    new.offset, encode_metadata(new.metadata)
                )
        if offsets and await self._store(offsets):
            self.committed |= stored

    async def _store(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> bool:
        try:
            await self._link.within(self.consumer.commit(offsets))
        except TimeoutError as error:
            raise LogUnavailable(f"Kafka did not store a commit of `{self._group}`") from error
        except (CommitFailedError, IllegalStateError):
            _log.info("A commit of `%s` came after a rebalance and does not count", self._group)
            return False
        except KafkaError as error:
            raise LogUnavailable(f"Kafka: {error!r}") from error
        return True

    # --- how far the log goes ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Note when each fetch was *asked*: its answer may have waited in a socket while this process was stopped."""
        client = self.consumer._client  # noqa: SLF001
        send = client.send

        async def timed(node_id: int, request: Any, **options: Any) -> Any:
            asked = self._link.clock()
            answer = await send(node_id, request, **options)
            if isinstance(request, FetchRequest):
                for _, partitions in answer.topics:
                    for partition, code, end, *_ in partitions:
                        if not code:
                            self.seen[partition] = (end, asked)
            return answer

        client.send = timed


def advanced(old: Committed, commit: Commit) -> Committed:
    """The group's commit after this one: neither offset nor metadata go back."""
    if old.offset is not None and commit.offset < old.offset:
        return old
    return Committed(commit.offset, later_metadata(old, commit))


def encode_metadata(metadata: int | None) -> str:
    """The text that Kafka stores beside an offset."""
    return "" if metadata is None else json.dumps({"marks": metadata})


def decode_metadata(text: str | None) -> int | None:
    """The number in it; None: it holds none, or another program wrote it."""
    try:
        decoded: Any = json.loads(text or "{}")
        return int(decoded["marks"])
    except (ValueError, KeyError, TypeError):
        return None
