"""Signals to the user's own Kafka: idempotent, acknowledged by all replicas, each with its CloudEvents headers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import ClassVar, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError
from aiokafka.structs import RecordMetadata

from collector.config.tree import Config, KafkaSinkConfig
from collector.errors import Retryable
from collector.kafka.client import abandon, client_settings, stop_within
from collector.kafka.log_limit import limit_aiokafka_log
from collector.log.port import Position, Record
from collector.records.signal_codec import INTERNAL
from collector.signals.sinks.port import Refused

logger = logging.getLogger(__name__)

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class KafkaSink:
    """Key, value and headers go out as they stand in the log, the internal headers apart.

    aiokafka waits for ever while the broker is away, so every await here has a deadline of ours. What is in flight
    when it passes stays in flight: the next try waits on, instead of sending a second time.
    """

    name: ClassVar[str] = "kafka"

    def __init__(
        self, settings: KafkaSinkConfig, *, timeout: float = 15.0, stuck_after: float = 300.0
    ) -> None:
        """Deliver to `settings.topic`; a try ends after `timeout` seconds.

        After `stuck_after` seconds without one acknowledgement the connection is made anew: the brokers may have
        moved.
        """
        self._client = client_settings(settings.bootstrap_servers, settings.security)
        self._topic = settings.topic
        self._timeout = timeout
        self._stuck_after = stuck_after
        self._producer: AIOKafkaProducer | None = None
        self._starting: asyncio.Task[None] | None = None
        self._topic_seen = False
        self._progress = 0.0
        self._in_flight: dict[Position, asyncio.Future[RecordMetadata]] = {}
        self._acked: set[Position] = set()
        self._suspects: set[Position] = set()
        """Of a batch that was too large: tried one by one."""
        self._refused: dict[Position, str] = {}
        limit_aiokafka_log()

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        """See `SinkKind`."""
        section = config.sinks.kafka
        return None if section is None else cls(section)

    async def deliver(self, records: Sequence[Record]) -> None:
        """See `Sink`. Only what is too large for the topic is refused: all else a human or time can mend."""
        try:
            async with asyncio.timeout(self._timeout):
                while pending := [each for each in records if self._is_pending(each)]:
                    await self._round(pending)
        except TimeoutError as error:
            await self._renew_if_stuck()
            raise Retryable(f"Kafka acknowledged nothing in {self._timeout:g} s") from error
        except (KafkaError, OSError) as error:
            await self._abandon()
            raise Retryable(f"Kafka: {error!r}") from error
        refused, self._refused = self._refused, {}
        self._acked.clear()
        self._suspects.clear()
        if refused:
            raise Refused(refused)

    def _is_pending(self, record: Record) -> bool:
        return record.position not in self._acked and record.position not in self._refused

    async def _round(self, pending: Sequence[Record]) -> None:
        """Send what is pending and wait for every answer; suspects alone, one a round."""
        suspects = [each for each in pending if each.position in self._suspects]
        chosen = suspects[:1] or pending
        producer = await self._connected()
        await self._send(producer, chosen)
        if self._in_flight:
            await asyncio.wait(self._in_flight.values())
        await self._take_answers(chosen)

    async def close(self, deadline: float) -> None:
        """See `Sink`. What is still in flight is delivered again after the next start."""
        if self._starting is not None:
            await self._abandon()
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop_within(producer, deadline)
        self._forget()

    async def _connected(self) -> AIOKafkaProducer:
        """The producer, started, and the topic seen at least once: aiokafka would wait 40 s for a missing one."""
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                **self._client,
                acks="all",
                enable_idempotence=True,
                compression_type="zstd",
                linger_ms=10,
                max_batch_size=128 << 10,
            )
            self._progress = _now()
            # Never cancelled by a try's deadline: a cancelled start leaks its connection.
            self._starting = asyncio.create_task(self._producer.start())
        if self._starting is not None:
            await asyncio.wait([self._starting])
            starting, self._starting = self._starting, None
            starting.result()
        if not self._topic_seen:
            await self._see_topic(self._producer)
        return self._producer

    async def _see_topic(self, producer: AIOKafkaProducer) -> None:
        metadata = await producer.client.fetch_all_metadata()
        if self._topic not in metadata.topics():
            raise Retryable(
                f"topic `{self._topic}` does not exist or may not be read; create it: signals wait"
            )
        self._topic_seen = True

    async def _send(self, producer: AIOKafkaProducer, records: Sequence[Record]) -> None:
        """One send after the other from one task: only so does the order hold."""
        for record in records:
            if record.position in self._in_flight:
                continue
            headers = [each for each in record.headers if not each[0].startswith(INTERNAL)]
            try:
                self._in_flight[record.position] = await producer.send(
                    self._topic, value=record.value, key=record.key, headers=headers
                )
            except _TOO_LARGE as error:
                self._refuse(record, error)

    async def _take_answers(self, chosen: Sequence[Record]) -> None:
        """Note what each answer says; an error that is not about a record is raised last."""
        answers, self._in_flight = self._in_flight, {}
        errors = {position: future.exception() for position, future in answers.items()}
        self._acked |= {position for position, error in errors.items() if error is None}
        self._progress = _now()
        too_large = [each for each in chosen if isinstance(errors.get(each.position), _TOO_LARGE)]
        if len(too_large) == len(chosen) == 1:
            self._refuse(chosen[0], errors[chosen[0].position])
        self._suspects |= {each.position for each in too_large}
        if too_large:
            # The refused batch used up sequence numbers: the broker would call the next one out of order.
            await self._abandon()
            return
        for error in errors.values():
            if error is not None:
                raise error

    def _refuse(self, record: Record, error: BaseException | None) -> None:
        self._refused[record.position] = f"{len(record.value)} bytes: {error}"

    async def _renew_if_stuck(self) -> None:
        if any(future.done() for future in self._in_flight.values()):
            self._progress = _now()
        elif self._producer is not None and _now() - self._progress > self._stuck_after:
            await self._abandon()

    async def _abandon(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.wait([starting], timeout=1.0)
        producer, self._producer = self._producer, None
        if producer is not None:
            await abandon(producer)
        self._forget()

    def _forget(self) -> None:
        """Take note of the answers nobody will wait for, so that none is reported as never retrieved."""
        for future in self._in_flight.values():
            if future.done() and not future.cancelled():
                future.exception()
            future.cancel()
        self._in_flight.clear()
        self._topic_seen = False


def _now() -> float:
    return asyncio.get_running_loop().time()
