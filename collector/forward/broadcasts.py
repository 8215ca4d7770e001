"""What the owners of traces must know and cannot see in their partition: feedback, and alarms of agents.

Whoever knows it writes it into every partition of `traces` that it may be about, so that decisions follow from the
records of one partition, in their order.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from collector.base.errors import Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, FEEDBACK, TRACES, Batch, Log, New, partition_of
from collector.records.codec import encode
from collector.records.feedback import Feedback, decode_feedback
from collector.records.keeping import BroadcastRecord, agent_key, session_of
from collector.records.sessions import session_key
from collector.records.standing import Standings

GROUP = "forward.feedback"
EVERY = 5.0
"""Seconds between two looks at the alarms: a fault lasts for hours."""


class FeedbackBroadcaster(Consumer):
    """One member of the group that broadcasts feedback."""

    def __init__(self, *, log: Log, telemetry: Telemetry) -> None:
        super().__init__(
            log=log,
            group=GROUP,
            topic=FEEDBACK,
            retry=Retry("Broadcasting feedback"),
            telemetry=telemetry,
            linger=BACKGROUND_LINGER,
        )

    async def take(self, batch: Batch) -> None:
        """Every record of the batch is broadcast when this returns."""
        new: list[New] = []
        for record in batch.records:
            try:
                new += _broadcast(decode_feedback(record.value), self._log_port.partitions(TRACES))
            except Undecodable as error:
                self._poison.unprocessable(record.position, error)
            self._offsets.done(record.position)
        if new:
            await self._retry.log("broadcast feedback", lambda: self._log_port.write(new))


@dataclass(slots=True, kw_only=True)
class AlarmBroadcaster:
    """Broadcasts which agents have a fault or a drop, whenever that changes and once at its start."""

    log: Log
    standings: Callable[[], Standings]  # of every agent now
    caught_up: Callable[[], bool]  # whether they are those of before a restart at least
    _retry: Retry = field(default_factory=lambda: Retry("Broadcasting alarms"), init=False)
    _broadcast: tuple[str, ...] | None = field(default=None, init=False)

    async def run(self, stopping: asyncio.Event) -> None:
        """Look every EVERY seconds until `stopping` is set."""
        self._retry.stopping = stopping
        while not stopping.is_set():
            if self.caught_up():
                await self.look()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), EVERY)

    async def look(self) -> None:
        alarms = tuple(sorted(_alarmed(self.standings())))
        if alarms == self._broadcast:
            return
        value = encode(BroadcastRecord(alarms=alarms))
        new = _everywhere(value, self.log.partitions(TRACES))
        await self._retry.log("broadcast alarms", lambda: self.log.write(new))
        self._broadcast = alarms


def _alarmed(standings: Standings) -> Iterator[str]:
    for each in standings.values():
        if each.faults or any(drop.direction == "worse" for drop in each.drops):
            yield agent_key(each.service, each.agent)


def _broadcast(said: Feedback, partitions: int) -> list[New]:
    """A session is in one partition; which one a trace is in, its id does not say. Scores of others are no feedback."""
    if said.kind != "human":
        return []
    if said.session_id is not None and said.service is not None:
        key = session_key(said.service, said.session_id)
        value = encode(BroadcastRecord(said=session_of(key)))
        return [New(topic=TRACES, key=key, value=value, partition=partition_of(key, partitions))]
    if said.trace_id is None:
        return []
    value = encode(BroadcastRecord(said=bytes.fromhex(said.trace_id)))
    return _everywhere(value, partitions)


def _everywhere(value: bytes, partitions: int) -> list[New]:
    return [New(topic=TRACES, key=b"", value=value, partition=at) for at in range(partitions)]
