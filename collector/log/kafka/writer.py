"""Writing to Kafka: topic after topic, every wait bounded.

A call that runs out of time leaves its records in flight: the same call again waits on for their answers, other calls
are refused meanwhile. So neither do records pile up, nor does one overtake another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata

from collector.base.errors import LogUnavailable, RecordTooLarge
from collector.log.kafka.cluster import APPEND_TIME, LARGEST, Cluster, Topics
from collector.log.kafka.producer import TOO_LARGE, Producer
from collector.log.kafka.records import signed
from collector.log.kafka.rights import WRITE, failure
from collector.log.port import COMPACTED, New, Position, partition_of

_FRAME = 256  # bytes that Kafka adds to a record that is alone in its batch, at most, headers apart
STUCK_AFTER = 120.0  # seconds without one answer after which the connection is renewed


@dataclass(frozen=True, slots=True)
class _InFlight:
    new: New
    answer: asyncio.Future[RecordMetadata]
    sent: float  # the clock's time


class KafkaWriter:
    """One producer. `compression`: aiokafka's name of a codec, or None."""

    def __init__(self, cluster: Cluster, *, compression: str | None) -> None:
        self._cluster = cluster
        self._producer = Producer(
            cluster.client,
            compression=compression,
            linger_ms=5,
            max_batch_size=256 << 10,
            max_request_size=LARGEST + (1 << 20),
            stuck_after=STUCK_AFTER,
        )
        self._order = asyncio.Lock()
        self._in_flight: dict[int, _InFlight] = {}
        """By the record's identity: sent, and its answer was not taken yet."""
        self._given_up: set[int] = set()  # of these, the records of calls that ran out of time

    async def write(self, records: Sequence[New]) -> list[Position]:
        """Append; see `port.Log.write`. Topics are written one after another, in the order the call names them.

        Raises LogUnavailable: see `port.Log.write`. Raises RecordTooLarge: see `port.Log.write`.
        """
        call = _WriteCall(records, self._cluster.reached(), self._cluster.owner)
        await self._refuse_while_stuck(records)
        late = f"Kafka acknowledged nothing in {self._cluster.deadline:g} s"
        try:
            await self._cluster.within(self._append(call), late)
        except LogUnavailable:
            if await self._producer.renew_if_stuck():
                self._forget()
            raise
        except TOO_LARGE as error:
            await self.renew()
            raise RecordTooLarge(f"Kafka refused a record: {error}") from error
        except (KafkaError, OSError) as error:
            await self.renew()
            raise LogUnavailable(failure(error, WRITE)) from error
        finally:
            self._given_up |= {id(new) for new in records if id(new) in self._in_flight}
        return call.written

    async def renew(self) -> None:
        """Give the producer up; the next call makes another. Records in flight may be written or not."""
        await self._producer.renew()
        self._forget()

    async def close(self, seconds: float) -> None:
        await self._producer.close(seconds)
        self._forget()

    async def _append(self, call: _WriteCall) -> None:
        for wave in call.waves():
            await self._write(call, wave)

    async def _write(self, call: _WriteCall, wave: Sequence[int]) -> None:
        producer = await self._producer.started()
        sent = [(at, await self._send(producer, call, at, call.value(at))) for at in wave]
        await self._take_answers(call, sent)

    async def _send(
        self, producer: AIOKafkaProducer, call: _WriteCall, index: int, value: bytes | None
    ) -> _InFlight:
        """Send the record, unless an earlier attempt of this call has it in flight."""
        new = call.records[index]
        if id(new) in self._in_flight:
            return self._in_flight[id(new)]
        topic, partition = call.targets[index]
        async with self._order:
            sent = self._cluster.clock()
            answer = await self._producer.send(
                producer,
                self._cluster.name(topic),
                value=value,
                key=new.key,
                partition=partition,
                headers=signed(new, self._cluster.owner),
            )
        self._in_flight[id(new)] = _InFlight(new, answer, sent)
        return self._in_flight[id(new)]

    async def _take_answers(self, call: _WriteCall, sent: Sequence[tuple[int, _InFlight]]) -> None:
        """Wait for all of them; the first error is raised when every answer has been taken."""
        if not sent:
            return
        await asyncio.wait([each.answer for _, each in sent])
        error: BaseException | None = None
        for index, each in sent:
            self._in_flight.pop(id(each.new), None)
            self._given_up.discard(id(each.new))
            failed = each.answer.exception()
            error = error or failed
            if failed is None:
                topic, partition = call.targets[index]
                appended = each.answer.result()
                call.positions[index] = Position(topic, partition, appended.offset)
                if appended.timestamp is not None and appended.timestamp_type == APPEND_TIME:
                    self._cluster.heard(appended.timestamp / 1000, sent=each.sent)
        if error is not None:
            raise error

    async def _refuse_while_stuck(self, records: Sequence[New]) -> None:
        for key in [key for key in self._given_up if self._in_flight[key].answer.done()]:
            self._given_up.discard(key)
            del self._in_flight[key]
        if self._given_up and not any(id(new) in self._given_up for new in records):
            # The call that was given up may never come again: a sender that has gone does not repeat its request.
            if await self._producer.renew_if_stuck():
                self._forget()
            else:
                raise LogUnavailable("Kafka has not acknowledged earlier records yet")

    def _forget(self) -> None:
        self._in_flight.clear()
        self._given_up.clear()


class _WriteCall:
    """The records of one call, the topics and partitions they go to, and the positions they have so far."""

    def __init__(self, records: Sequence[New], topics: Topics, owner: bytes) -> None:
        self.records = records
        self.targets = [_target(new, topics) for new in records]
        self.positions: list[Position | None] = [None] * len(records)
        self._topics = topics
        self._owner = owner
        for new in records:
            if new.count != 1:
                raise ValueError(f"on Kafka no record takes {new.count} offsets")
            if not callable(new.value):
                self._check(new, new.value)

    def waves(self) -> list[list[int]]:
        """The indexes of each topic's records, topics in the order in which the call first names them."""
        waves: dict[str, list[int]] = {}
        for index, new in enumerate(self.records):
            waves.setdefault(new.topic, []).append(index)
        return list(waves.values())

    def value(self, index: int) -> bytes | None:
        new = self.records[index]
        if not callable(new.value):
            return new.value
        before = self.positions[index - 1] if index else None
        if before is None:
            raise ValueError("a value follows from a record of a topic that the call named earlier")
        value = new.value(before)
        self._check(new, value)
        return value

    @property
    def written(self) -> list[Position]:
        return [position for position in self.positions if position is not None]

    def _check(self, new: New, value: bytes | None) -> None:
        if value is None and new.topic not in COMPACTED:
            raise ValueError(f"topic `{new.topic}` is not compacted and takes no tombstones")
        headers = sum(len(name) + len(text) + 8 for name, text in signed(new, self._owner))
        size = len(new.key) + len(value or b"") + headers + _FRAME
        limit = self._topics.limits[new.topic]
        if size > limit:
            raise RecordTooLarge(f"a record of {size} bytes on `{new.topic}`; at most {limit}")


def _target(new: New, topics: Topics) -> tuple[str, int]:
    count = topics.partitions.get(new.topic)
    if count is None:
        raise ValueError(f"there is no topic `{new.topic}`")
    if new.partition is None:
        return new.topic, partition_of(new.key, count)
    if not 0 <= new.partition < count:
        raise ValueError(f"topic `{new.topic}` has no partition {new.partition}")
    return new.topic, new.partition
