"""A producer's life: started once, watched for acknowledgements, replaced when it is stuck, closed in bounded time."""

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError
from aiokafka.structs import RecordMetadata

from collector.log.kafka.client import ClientSettings, abandon, is_lost, stop_within

TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
"""A record is above the topic's limit. Renew the producer when an answer says so: the refused batch used up sequence
numbers, and the broker would call the next one out of order."""


@dataclass(slots=True, eq=False)
class Producer:
    """Idempotent, acknowledged by all replicas. Made at the first `started`, and again after `renew`.

    aiokafka waits without limit while a broker is away, so callers bound every wait. Records that were sent stay in
    flight when a caller gives up: their answers are still watched here. Settings are as aiokafka names them.
    """

    client: ClientSettings
    _: KW_ONLY
    compression: str | None
    linger_ms: int
    max_batch_size: int
    max_request_size: int = 1 << 20
    stuck_after: float
    """Seconds without an answer after which it is stuck."""
    _producer: AIOKafkaProducer | None = field(default=None, init=False)
    _starting: asyncio.Task[None] | None = field(default=None, init=False)
    _in_flight: set[asyncio.Future[RecordMetadata]] = field(
        default_factory=set[asyncio.Future[RecordMetadata]], init=False
    )
    _last_answer: float = field(default=0.0, init=False)

    async def started(self) -> AIOKafkaProducer:
        """The producer, connected.

        Raises:
            KafkaError, OSError: it could not connect; `renew` before the next attempt.
        """
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                **self.client,
                acks="all",
                enable_idempotence=True,
                compression_type=self.compression,
                linger_ms=self.linger_ms,
                max_batch_size=self.max_batch_size,
                max_request_size=self.max_request_size,
            )
            self._last_answer = _now()
            # In a task that no caller's deadline cancels: a cancelled start leaks its connection.
            self._starting = asyncio.create_task(self._producer.start())
        producer, starting = self._producer, self._starting
        if starting is not None:
            await asyncio.wait([starting])
            if self._starting is starting:
                self._starting = None
            starting.result()
        return producer

    async def send(
        self,
        producer: AIOKafkaProducer,
        topic: str,
        *,
        value: bytes | None,
        key: bytes,
        headers: Sequence[tuple[str, bytes]],
        partition: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Send one record with the producer that `started` returned; the future is its answer.

        One task at a time: only so are records sent in order. Raises KafkaError: it was not sent.
        """
        answer = await producer.send(
            topic, value=value, key=key, headers=list(headers), partition=partition
        )
        self._in_flight.add(answer)
        answer.add_done_callback(self._answered)
        return answer

    async def renew_if_stuck(self) -> bool:
        """Give the producer up when it has had no answer for too long: the brokers may have moved."""
        if self._producer is None:
            return False
        if _now() - self._last_answer <= self.stuck_after and not is_lost(self._producer.client):
            return False
        await self.renew()
        return True

    async def renew(self) -> None:
        """Give the producer up; the next call makes another. Records in flight may be written or not."""
        starting, self._starting = self._starting, None
        producer, self._producer = self._producer, None
        in_flight, self._in_flight = self._in_flight, set()
        if starting is not None and not starting.done():
            starting.cancel()
            await asyncio.wait([starting], timeout=1.0)
        if producer is not None:
            await abandon(producer)
        for answer in in_flight:
            answer.cancel()

    async def close(self, seconds: float) -> None:
        """Flush for at most that long."""
        if self._producer is not None and self._starting is None:
            await stop_within(self._producer, seconds)
            self._producer = None
        await self.renew()

    def _answered(self, answer: asyncio.Future[RecordMetadata]) -> None:
        self._in_flight.discard(answer)
        if not answer.cancelled():
            answer.exception()  # retrieved: the caller may have given up
            self._last_answer = _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
