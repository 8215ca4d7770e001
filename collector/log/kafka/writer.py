"""Writing to Kafka: idempotent, acknowledged by all replicas, topic after topic, every wait bounded.

aiokafka waits for ever while a broker is away, and what it has taken may still be written when the broker returns.
So a call that ran out of time leaves its records on their way: the same call again waits on for them, others are
refused meanwhile. Nothing piles up and nothing overtakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError
from aiokafka.structs import RecordMetadata

from collector.errors import LogUnavailable, RecordTooLarge
from collector.kafka.client import abandon, stop_within
from collector.log.kafka.cluster import LARGEST, Link, Topics
from collector.log.kafka.records import signed
from collector.log.partitioner import partition_of
from collector.log.port import COMPACTED, New, Position

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_FRAME = 256
"""Bytes that Kafka adds to a record that is alone in its batch, at most, headers apart."""
STUCK_AFTER = 120.0
"""Seconds without one acknowledgement after which the connection is made anew."""


@dataclass(frozen=True, slots=True)
class _Sent:
    new: New
    answer: asyncio.Future[RecordMetadata]


class Writer:
    """One producer. `compression`: aiokafka's name of a codec, None for none."""

    def __init__(self, link: Link, *, compression: str | None) -> None:
        self._link = link
        self._compression = compression
        self._order = asyncio.Lock()
        self._producer: AIOKafkaProducer | None = None
        self._starting: asyncio.Task[None] | None = None
        self._sent: dict[int, _Sent] = {}
        """By the record's identity: what nobody has seen an answer for."""
        self._left: set[int] = set()
        """Of these, whose call has given up."""
        self._progress = 0.0

    async def write(self, records: Sequence[New]) -> list[Position]:
        """Append; see `port.Log.write`. Topics are written one after another, in the order the call names them.

        Raises:
            LogUnavailable: see `port.Log.write`.
            RecordTooLarge: see `port.Log.write`.
        """
        call = _Call(records, self._link.reached(), self._link.owner)
        self._refuse_while_stuck(records)
        try:
            await self._link.within(self._append(call))
        except TimeoutError as error:
            await self._renew_if_stuck()
            raise LogUnavailable(
                f"Kafka acknowledged nothing in {self._link.deadline:g} s"
            ) from error
        except _TOO_LARGE as error:
            # The refused batch used up sequence numbers: the broker would call the next one out of order.
            await self.renew()
            raise RecordTooLarge(f"Kafka refused a record: {error}") from error
        except (KafkaError, OSError) as error:
            await self.renew()
            raise LogUnavailable(f"Kafka: {error!r}") from error
        finally:
            self._left |= {id(new) for new in records if id(new) in self._sent}
        return call.written

    async def close(self, seconds: float) -> None:
        """Flush for at most that long."""
        starting, self._starting = self._starting, None
        producer, self._producer = self._producer, None
        if starting is not None:
            starting.cancel()
            await asyncio.wait([starting], timeout=1.0)
        if producer is not None:
            await stop_within(producer, seconds)
        self._forget()

    # --- one call ------------------------------------------------------------------------------------------------

    async def _append(self, call: _Call) -> None:
        for wave in call.waves():
            await self._write(call, wave)

    async def _write(self, call: _Call, wave: Sequence[int]) -> None:
        producer = await self._started()
        on_their_way: list[int] = []
        for place in wave:
            try:
                value = call.value(place)
            except _NotYet:
                await self._answers(call, on_their_way)
                on_their_way = []
                value = call.value(place)
            await self._send(producer, call, place, value)
            on_their_way.append(place)
        await self._answers(call, on_their_way)

    async def _send(
        self, producer: AIOKafkaProducer, call: _Call, place: int, value: bytes | None
    ) -> None:
        new = call.records[place]
        if id(new) in self._sent:
            return
        topic, partition = call.places[place]
        async with self._order:
            answer = await producer.send(
                self._link.name(topic),
                value=value,
                key=new.key,
                partition=partition,
                headers=list(signed(new, self._link.owner)),
            )
        self._sent[id(new)] = _Sent(new, answer)

    async def _answers(self, call: _Call, places: Iterable[int]) -> None:
        """Wait for all of them; the first error is raised when every answer has been taken."""
        sent = [(place, self._sent[id(call.records[place])]) for place in places]
        if not sent:
            return
        await asyncio.wait([each.answer for _, each in sent])
        error: BaseException | None = None
        for place, each in sent:
            self._sent.pop(id(each.new), None)
            self._left.discard(id(each.new))
            failed = each.answer.exception()
            error = error or failed
            if failed is None:
                topic, partition = call.places[place]
                call.positions[place] = Position(topic, partition, each.answer.result().offset)
        self._progress = _now()
        if error is not None:
            raise error

    # --- the producer --------------------------------------------------------------------------------------------

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                **self._link.client,
                acks="all",
                enable_idempotence=True,
                compression_type=self._compression,
                linger_ms=5,
                max_batch_size=256 << 10,
                max_request_size=LARGEST + (1 << 20),
            )
            self._progress = _now()
            # Never cancelled by a call's deadline: a cancelled start leaks its connection.
            self._starting = asyncio.create_task(self._producer.start())
        producer, starting = self._producer, self._starting
        if starting is not None:
            await asyncio.wait([starting])
            if self._starting is starting:
                self._starting = None
            starting.result()
        return producer

    def _refuse_while_stuck(self, records: Sequence[New]) -> None:
        for key in [key for key in self._left if self._sent[key].answer.done()]:
            self._forget_one(key)
        if self._left and not any(id(new) in self._left for new in records):
            raise LogUnavailable("Kafka has not acknowledged earlier records yet")

    def _forget_one(self, key: int) -> None:
        self._left.discard(key)
        answer = self._sent.pop(key).answer
        if answer.cancelled():
            return
        answer.exception()
        self._progress = _now()

    async def _renew_if_stuck(self) -> None:
        if self._producer is not None and _now() - self._progress > STUCK_AFTER:
            await self.renew()

    async def renew(self) -> None:
        """Give the producer up; the next call makes another. What was on its way may or may not be written."""
        starting, self._starting = self._starting, None
        producer, self._producer = self._producer, None
        if starting is not None and not starting.done():
            starting.cancel()
            await asyncio.wait([starting], timeout=1.0)
        if producer is not None:
            await abandon(producer)
        self._forget()

    def _forget(self) -> None:
        """Look at the answers nobody will wait for, so that none is reported as never retrieved."""
        for each in self._sent.values():
            if each.answer.done() and not each.answer.cancelled():
                each.answer.exception()
            each.answer.cancel()
        self._sent.clear()
        self._left.clear()


class _NotYet(Exception):
    """A value asked for a position that is not known yet."""


class _Call:
    """The records of one call, the places they go to, and the positions they got so far."""

    def __init__(self, records: Sequence[New], topics: Topics, owner: bytes) -> None:
        self.records = records
        self.places = [_place(new, topics) for new in records]
        self.positions: list[Position | None] = [None] * len(records)
        self._topics = topics
        self._owner = owner
        for new in records:
            if not callable(new.value):
                self._check(new, new.value)

    def waves(self) -> list[list[int]]:
        """The places of each topic's records, topics in the order in which the call first names them."""
        waves: dict[str, list[int]] = {}
        for place, new in enumerate(self.records):
            waves.setdefault(new.topic, []).append(place)
        return list(waves.values())

    def value(self, place: int) -> bytes | None:
        """The record's value; `_NotYet`: it depends on answers still to come."""
        new = self.records[place]
        if not callable(new.value):
            return new.value
        value = new.value(_Before(self.positions, place))
        self._check(new, value)
        return value

    @property
    def written(self) -> list[Position]:
        """Where every record stands, once all waves are written."""
        return [position for position in self.positions if position is not None]

    def _check(self, new: New, value: bytes | None) -> None:
        if value is None and new.topic not in COMPACTED:
            raise ValueError(f"topic `{new.topic}` is not compacted and takes no tombstones")
        headers = sum(len(name) + len(text) + 8 for name, text in signed(new, self._owner))
        size = len(new.key) + len(value or b"") + headers + _FRAME
        limit = self._topics.limits[new.topic]
        if size > limit:
            raise RecordTooLarge(f"a record of {size} bytes on `{new.topic}`; at most {limit}")


class _Before(Sequence[Position]):
    """The positions of the records before one, as far as they are known."""

    def __init__(self, positions: list[Position | None], count: int) -> None:
        self._positions = positions
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Position: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Position]: ...
    def __getitem__(self, index: int | slice) -> Position | Sequence[Position]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        position = self._positions[range(self._count)[index]]
        if position is None:
            raise _NotYet
        return position


def _place(new: New, topics: Topics) -> tuple[str, int]:
    count = topics.partitions.get(new.topic)
    if count is None:
        raise ValueError(f"there is no topic `{new.topic}`")
    if new.partition is None:
        return new.topic, partition_of(new.key, count)
    if not 0 <= new.partition < count:
        raise ValueError(f"topic `{new.topic}` has no partition {new.partition}")
    return new.topic, new.partition


def _now() -> float:
    return asyncio.get_running_loop().time()
