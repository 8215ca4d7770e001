"""Signals to the user's own Kafka: idempotent, acknowledged by all replicas, each with its CloudEvents headers."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Self

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata

from collector.base.errors import Retryable
from collector.config.sinks import KafkaSinkConfig
from collector.config.tree import Config
from collector.log.kafka.client import ClientSettings, client_settings, prepare_aiokafka
from collector.log.kafka.producer import TOO_LARGE, Producer
from collector.log.kafka.question import ask_kafka
from collector.log.kafka.rights import WRITE, Right, failure, lacking, missing_rights
from collector.log.port import Position
from collector.records.signal_batch import Published, public_headers
from collector.sinks.feedback_delivery import OutgoingFeedback
from collector.sinks.port import Refused


class KafkaSink:
    """Delivers each signal as a record of its own, keyed by session id, with the headers of CloudEvents.

    Every attempt has a deadline. Records in flight when it passes stay in flight: the next attempt waits on for their
    answers instead of sending them a second time.
    """

    name: ClassVar[str] = "kafka"

    def __init__(
        self, settings: KafkaSinkConfig, *, timeout: float = 15.0, stuck_after: float = 300.0
    ) -> None:
        """Deliver to `settings.topic`; an attempt ends after `timeout` seconds.

        The connection is renewed after `stuck_after` seconds without one answer: the brokers may have moved.
        """
        self._producer = Producer(
            client_settings(settings.bootstrap_servers, settings.security),
            compression="zstd",
            linger_ms=10,
            max_batch_size=128 << 10,
            stuck_after=stuck_after,
        )
        self._topic = settings.topic
        self._timeout = timeout
        self._topic_exists = False
        self._in_flight: dict[Position, asyncio.Future[RecordMetadata]] = {}
        self._acked: set[Position] = set()
        self._suspects: set[Position] = set()
        """The records of a batch that was too large: sent one by one."""
        self._refused: dict[Position, str] = {}
        self._delivering = asyncio.Lock()
        prepare_aiokafka()

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = config.sinks.kafka
        return None if section is None else cls(section)

    @classmethod
    async def reachable(cls, config: Config) -> str | None:
        """The brokers answer, the topic is there, and we may write to it."""
        section = config.sinks.kafka
        if section is None:
            return None
        servers = section.bootstrap_servers
        asked = await ask_kafka(
            servers,
            section.security,
            lambda client: _asked(client, section.topic),
            section="sinks.kafka",
        )
        if isinstance(asked, str):
            return asked
        is_there, missing = asked
        if not is_there:
            return (
                f"sinks.kafka.topic: there is no topic `{section.topic}` at {servers} that we may "
                "read; create it"
            )
        return lacking(missing, "sinks.kafka")

    async def deliver(self, signals: Sequence[Published]) -> None:
        """Only signals above the topic's limit are refused; every other failure is `Retryable`."""
        async with self._delivering:
            await self._deliver([_handed_on(each) for each in signals])

    async def deliver_feedback(self, feedback: Sequence[OutgoingFeedback]) -> None:
        """Records of the same topic; `ce_type` distinguishes them."""
        async with self._delivering:
            await self._deliver(feedback)

    async def _deliver(self, messages: Sequence[OutgoingFeedback]) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                while pending := [each for each in messages if self._is_pending(each)]:
                    await self._round(pending)
        except TimeoutError as error:
            if await self._producer.renew_if_stuck():
                self._forget()
            raise Retryable(f"Kafka acknowledged nothing in {self._timeout:g} s") from error
        except (KafkaError, OSError) as error:
            await self._renew()
            raise Retryable(failure(error, WRITE)) from error
        refused, self._refused = self._refused, {}
        self._acked.clear()
        self._suspects.clear()
        if refused:
            raise Refused(refused)

    def _is_pending(self, message: OutgoingFeedback) -> bool:
        return message.position not in self._acked and message.position not in self._refused

    async def _round(self, pending: Sequence[OutgoingFeedback]) -> None:
        """Send the pending records and wait for every answer; suspects alone, one per round."""
        suspects = [each for each in pending if each.position in self._suspects]
        chosen = suspects[:1] or pending
        producer = await self._connected()
        await self._send(producer, chosen)
        if self._in_flight:
            await asyncio.wait(self._in_flight.values())
        await self._take_answers(chosen)

    async def close(self, deadline: float) -> None:
        """Records still in flight are delivered again after the next start."""
        await self._producer.close(deadline)
        self._forget()

    async def _connected(self) -> AIOKafkaProducer:
        """The producer, connected, once the topic exists: aiokafka would wait 40 s for a missing one."""
        producer = await self._producer.started()
        if not self._topic_exists:
            metadata = await producer.client.fetch_all_metadata()
            if self._topic not in metadata.topics():
                raise Retryable(
                    f"topic `{self._topic}` does not exist or may not be read; create it: signals wait"
                )
            self._topic_exists = True
        return producer

    async def _send(self, producer: AIOKafkaProducer, messages: Sequence[OutgoingFeedback]) -> None:
        """One send after the other from one task: only so does the order hold."""
        for each in messages:
            if each.position in self._in_flight:
                continue
            try:
                self._in_flight[each.position] = await self._producer.send(
                    producer,
                    self._topic,
                    value=each.json,
                    key=each.key,
                    headers=list(each.headers),
                )
            except TOO_LARGE as error:
                self._refuse(each, error)

    async def _take_answers(self, chosen: Sequence[OutgoingFeedback]) -> None:
        """Take every answer; an error that is not about a record's size is raised last."""
        answers, self._in_flight = self._in_flight, {}
        errors = {position: future.exception() for position, future in answers.items()}
        self._acked |= {position for position, error in errors.items() if error is None}
        too_large = [each for each in chosen if isinstance(errors.get(each.position), TOO_LARGE)]
        if len(too_large) == len(chosen) == 1:
            self._refuse(chosen[0], errors[chosen[0].position])
        self._suspects |= {each.position for each in too_large}
        if too_large:
            await self._renew()
            return
        for error in errors.values():
            if error is not None:
                raise error

    def _refuse(self, message: OutgoingFeedback, error: BaseException | None) -> None:
        self._refused[message.position] = f"{len(message.json)} bytes: {error}"

    async def _renew(self) -> None:
        await self._producer.renew()
        self._forget()

    def _forget(self) -> None:
        self._in_flight.clear()
        self._topic_exists = False


def _handed_on(signal: Published) -> OutgoingFeedback:
    key = signal.subject.session_id.encode()
    return OutgoingFeedback(signal.position, key, signal.json, public_headers(signal))


async def _asked(client: ClientSettings, topic: str) -> tuple[bool, list[Right]]:
    admin = AIOKafkaAdminClient(**client)
    try:
        await admin.start()
        is_there = topic in await admin.list_topics()
        return is_there, await missing_rights(admin, topics=[topic], operations=[WRITE])
    finally:
        await admin.close()
