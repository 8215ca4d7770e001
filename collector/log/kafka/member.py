"""One membership in a consumer group: its partitions, the changes that its reader must report, its commits.

A rebalance revokes every partition and assigns some again. It waits, within bounds, until the reader is polled again:
by then the records of the batch before are written and committed, and the next owner repeats none of them.
"""

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

from collector.base.errors import LogUnavailable
from collector.log.commits import Committed, advanced
from collector.log.kafka.client import check_membership, committed_offsets, ended, network_client
from collector.log.kafka.cluster import Cluster
from collector.log.kafka.rights import READ, failure
from collector.log.port import Commit

REBALANCE = 30.0  # seconds that a rebalance waits for its live members
_log = logging.getLogger(__name__)


class Member(ConsumerRebalanceListener):
    """A consumer in its group. Owned by one reader."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self._cluster = cluster
        self._group = group
        self._name = cluster.name(topic)
        self.changed = asyncio.Event()  # set when partitions were revoked or assigned
        self.revoked_pending: set[int] = set()  # revoked, and not reported by a poll yet
        self.assigned_pending: set[int] | None = None
        """Assigned, and not reported by a poll yet; None: no change."""
        self.owned: set[int] = set()
        """Reported as assigned and not revoked: only these may be committed."""
        self.committed: dict[int, Committed] = {}
        self.fetched_ends: dict[int, tuple[int, float]] = {}
        """By partition: its end offset, and the clock when the fetch that returned it was sent."""
        self._ended: KafkaError | None = None
        self._revoked_taken = asyncio.Event()
        self._patience = cluster.settings.session_timeout / 2
        session = int(cluster.settings.session_timeout * 1000)
        self.consumer = AIOKafkaConsumer(
            **cluster.client,
            group_id=cluster.group(group),
            group_instance_id=cluster.settings.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=(RangePartitionAssignor,),
            session_timeout_ms=session,
            heartbeat_interval_ms=max(100, session // 4),
            rebalance_timeout_ms=max(session, int(REBALANCE * 1000)),
        )

    async def start(self) -> None:
        await self.consumer.start()
        self._watch()
        self.consumer.subscribe([self._name], listener=self)

    def check(self) -> None:
        """Raise what ended its part in the group: as long as it owns nothing, no fetch does.

        Raises KafkaError: another member has to join in its place.
        """
        try:
            check_membership(self.consumer)
        except Exception as error:  # noqa: BLE001 - whatever a task of aiokafka has ended of; it says so once
            self._ended = error if isinstance(error, KafkaError) else KafkaError(repr(error))
        if self._ended is not None:
            raise self._ended

    def look_for_topic(self) -> None:
        """Ask for the topic's partitions, if the client knows of none.

        The member that shares them out may have done so while a starting broker named none: no one owns any then,
        until its metadata, which aiokafka asks for every five minutes, say otherwise.
        """
        if not self.consumer.partitions_for_topic(self._name):
            network_client(self.consumer).force_metadata_update()

    async def stop(self, seconds: float) -> None:
        self._revoked_taken.set()
        await ended(asyncio.create_task(self.consumer.stop()), seconds)

    def topic_partition(self, partition: int) -> TopicPartition:
        return TopicPartition(self._name, partition)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Called by aiokafka; commits still count until this returns."""
        self.assigned_pending = None
        if not self.owned:
            return
        self.revoked_pending = set(self.owned)
        self._revoked_taken.clear()
        self.changed.set()
        try:
            async with asyncio.timeout(self._patience):
                await self._revoked_taken.wait()
        except TimeoutError:
            _log.warning(
                "`%s` was busy when its partitions were revoked; some records may be repeated.",
                self._group,
            )
        self.owned.clear()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.assigned_pending = {each.partition for each in assigned}
        self.fetched_ends.clear()
        self.changed.set()

    def take_revoked(self) -> tuple[int, ...]:
        """The partitions that the reader must report as revoked now."""
        revoked, self.revoked_pending = tuple(sorted(self.revoked_pending)), set()
        self.owned.clear()
        self._revoked_taken.set()
        return revoked

    def start_at(self, starts: Mapping[int, int]) -> None:
        for partition, offset in starts.items():
            self.consumer.seek(self.topic_partition(partition), offset)
        self.owned = set(starts)
        self.assigned_pending = None

    async def read_commits(self, partitions: Iterable[int]) -> dict[int, Committed]:
        """The group's commits; no entry: none yet."""
        topic_partitions = [self.topic_partition(each) for each in partitions]
        stored = await committed_offsets(self.consumer, topic_partitions)
        return {
            topic_partition.partition: Committed(each.offset, decode_metadata(each.metadata))
            for topic_partition, each in stored.items()
        }

    async def commit(self, commits: Sequence[Commit]) -> None:
        """Store the commits of owned partitions; those of other partitions are their owners'.

        Once it is not part of its group any more it owns nothing: the next poll says so, and another member joins.
        Raises LogUnavailable: no answer in time; they may be stored.
        """
        try:
            self.check()
        except KafkaError as error:
            _log.warning(
                "A commit of `%s` was not stored, it joins its group again: %r", self._group, error
            )
            self.revoked_pending |= self.owned
            self.owned.clear()
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        stored: dict[int, Committed] = {}
        for commit in commits:
            if commit.partition not in self.owned:
                continue
            old = stored.get(commit.partition, self.committed.get(commit.partition, Committed()))
            new = advanced(old, commit)
            if new != old and new.offset is not None:
                stored[commit.partition] = new
                offsets[self.topic_partition(commit.partition)] = OffsetAndMetadata(
                    new.offset, encode_metadata(new.metadata)
                )
        if offsets and await self._store(offsets):
            self.committed |= stored

    async def _store(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> bool:
        try:
            late = f"Kafka did not store a commit of `{self._group}`"
            await self._cluster.within(self.consumer.commit(offsets), late)
        except (CommitFailedError, IllegalStateError):
            _log.info("A commit of `%s` came after a rebalance and was not stored.", self._group)
            return False
        except KafkaError as error:
            raise LogUnavailable(failure(error, READ)) from error
        return True

    def _watch(self) -> None:
        """Note when each fetch was sent: its answer may have waited in a socket while this process was paused."""
        client = network_client(self.consumer)
        send = client.send

        async def timed(node_id: int, request: Any, **options: Any) -> Any:
            sent_at = self._cluster.clock()
            answer = await send(node_id, request, **options)
            if isinstance(request, FetchRequest):
                for _, partitions in answer.topics:
                    for partition, code, end, *_ in partitions:
                        if not code:
                            self.fetched_ends[partition] = (end, sent_at)
            return answer

        client.send = timed


def encode_metadata(metadata: int | None) -> str:
    return "" if metadata is None else json.dumps({"marks": metadata})


def decode_metadata(text: str | None) -> int | None:
    """The number in it; None: it holds none, or another program wrote it."""
    try:
        decoded: Any = json.loads(text or "{}")
        return int(decoded["marks"])
    except (ValueError, KeyError, TypeError):
        return None
