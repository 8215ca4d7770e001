"""aiokafka in bounded time: a client's settings, how to stop one, how to give one up; all uses of its private parts.

With the broker away aiokafka logs 10 to 30 lines a second per client: `limit_aiokafka_log` bounds that.

aiokafka is pinned below 0.15 (pyproject.toml) because of the private parts.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, TypedDict, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError, ProducerClosed
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from collector.base.errors import ConfigError
from collector.config.sinks import KafkaSecurity

# A write to a connection that was just lost, made to fail as aiokafka expects it to.
#
# On uvloop it raises RuntimeError, and aiokafka expects OSError (aio-libs/aiokafka#1038): the task that keeps a
# client's metadata then ends, and whatever waits for a new leader or coordinator waits forever.

_WRITES = ("send", "_send_sasl_token")


def heed_lost_connections() -> None:
    """Do so for every connection of this process; doing it again changes nothing."""
    for name in _WRITES:
        write = getattr(AIOKafkaConnection, name)
        if not hasattr(write, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _heeding(write))


def _heeding(write: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write)
    def heeding(self: AIOKafkaConnection, *arguments: Any, **options: Any) -> Any:
        try:
            return write(self, *arguments, **options)
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"the connection was lost: {error}") from error

    return heeding


LOOK = 1.0  # seconds after which a wait asks again how long it may last
LOGGED = 256  # distinct messages that are remembered; beyond it the memory begins afresh
_T = TypeVar("_T")


class ClientSettings(TypedDict):
    """What every aiokafka client takes to reach a cluster."""

    bootstrap_servers: str
    security_protocol: str
    ssl_context: ssl.SSLContext | None
    sasl_mechanism: str
    sasl_plain_username: str | None
    sasl_plain_password: str | None


def client_settings(
    bootstrap_servers: str, security: KafkaSecurity, *, section: str = "sinks.kafka"
) -> ClientSettings:
    """The settings of a client for these servers; `section` is where the user wrote them.

    Raises ConfigError: a server is not host:port, or a certificate cannot be read.
    """
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(
                f'{section}.bootstrap_servers: expected "a:9092,b:9092", got "{bootstrap_servers}"'
            )
    password = security.password
    return ClientSettings(
        bootstrap_servers=bootstrap_servers,
        security_protocol=security.protocol,
        ssl_context=_ssl_context(security, section),
        sasl_mechanism=security.sasl_mechanism or "PLAIN",
        sasl_plain_username=security.username,
        sasl_plain_password=None if password is None else password.get_secret_value(),
    )


def _ssl_context(security: KafkaSecurity, section: str) -> ssl.SSLContext | None:
    if "SSL" not in security.protocol.split("_"):
        return None
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
        if security.cert_file is not None:
            context.load_cert_chain(security.cert_file, security.key_file)
    except OSError as error:
        raise ConfigError(f"{section}.security: a certificate cannot be read: {error}") from error
    return context


async def stop_within(producer: AIOKafkaProducer, seconds: float) -> None:
    """Flush and stop; give the producer up when that takes longer."""
    stop = asyncio.create_task(producer.stop())
    if not await ended(stop, seconds / 2):
        await _give_up(producer, stop, seconds / 2)


async def abandon(producer: AIOKafkaProducer, *, seconds: float = 2.0) -> None:
    """Stop without flushing: unsent records fail, so that another producer can send them."""
    await _give_up(producer, asyncio.create_task(producer.stop()), seconds)


async def _give_up(producer: AIOKafkaProducer, stop: asyncio.Task[None], seconds: float) -> None:
    """End a stop that waits for a broker. aiokafka has no public way to cancel its flush."""
    await asyncio.sleep(0)  # let `stop` begin: it refuses new records first
    producer._message_accumulator.fail_all(ProducerClosed())  # noqa: SLF001
    sender = producer._sender.sender_task  # noqa: SLF001
    if sender is not None:
        sender.cancel()
    # Requests in flight end when their connection does, and the stop with them.
    await ended(asyncio.create_task(producer.client.close()), seconds / 2)
    if not await ended(stop, seconds / 2):
        stop.cancel()
        await ended(stop, 1.0)


def network_client(client: AIOKafkaConsumer | AIOKafkaAdminClient) -> AIOKafkaClient:
    """The connections below a client: for requests of our own, which it has no methods for."""
    return client._client  # noqa: SLF001


def check_membership(consumer: AIOKafkaConsumer) -> None:
    """Raise what ended the consumer's part in its group: aiokafka tells only a consumer that fetches.

    Raises KafkaError: it takes no part in the group until it is made again.
    """
    if is_lost(consumer._client):  # noqa: SLF001
        raise KafkaError("the client no longer finds a broker")
    consumer._coordinator.check_errors()  # noqa: SLF001


def is_lost(client: AIOKafkaClient) -> bool:
    """Whether its metadata stays as it is: aiokafka's task for it ends at an error that it does not expect.

    Whatever asks for a new leader or coordinator then waits forever, without a word.
    """
    task = client._sync_task  # noqa: SLF001
    return task is not None and task.done()


async def committed_offsets(
    consumer: AIOKafkaConsumer, topic_partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """The group's commits with their metadata, which the public `committed` leaves out."""
    coordinator = consumer._coordinator  # noqa: SLF001
    return await coordinator.fetch_committed_offsets(topic_partitions)


async def within(limit: Callable[[], float], work: Coroutine[Any, Any, _T]) -> _T:
    """The result of something aiokafka does, in `limit()` seconds, which may become fewer meanwhile.

    A cancellation alone is not enough: aiokafka swallows some. Raises TimeoutError: it was given up; it may still
    happen.
    """
    task = asyncio.create_task(work)
    began = asyncio.get_running_loop().time()
    left = limit()
    try:
        while not task.done() and left > 0:
            await asyncio.wait([task], timeout=min(left, LOOK))
            left = began + limit() - asyncio.get_running_loop().time()
    finally:
        if not task.done():
            task.cancel()
    if not task.done():
        await asyncio.wait([task], timeout=1.0)
    if not task.done() or task.cancelled():
        raise TimeoutError
    return task.result()


async def ended(task: asyncio.Task[None], seconds: float) -> bool:
    """Whether the task ended in time.

    aiokafka's stop may end in a `CancelledError` without a cancellation: in a task of its own that does no harm.
    """
    await asyncio.wait([task], timeout=seconds)
    if task.done() and not task.cancelled():
        task.exception()
    return task.done()


class RateLimited(logging.Handler):
    """Passes each distinct message on to the root logger at most once per `every` seconds, then with a count.

    A handler and not a filter: filters of a logger do not see what its children log.
    """

    def __init__(
        self, *, every: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every = every
        self._monotonic = monotonic
        self._passed: dict[tuple[str, int, str], float] = {}
        self._held: dict[tuple[str, int, str], int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        key = (record.name, record.levelno, str(record.msg))
        now = self._monotonic()
        last = self._passed.get(key)
        if last is not None and now - last < self._every:
            self._held[key] = self._held.get(key, 0) + 1
            return
        if len(self._passed) >= LOGGED:
            self._passed.clear()
            self._held.clear()
        self._passed[key] = now
        held = self._held.pop(key, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held} more like it)", ()
        logging.getLogger().handle(record)


def prepare_aiokafka() -> None:
    """What this process needs before its first client of aiokafka; doing it again changes nothing."""
    limit_aiokafka_log()
    heed_lost_connections()


def limit_aiokafka_log() -> None:
    """Put the bound on the `aiokafka` logger; doing it again changes nothing."""
    logger = logging.getLogger("aiokafka")
    if any(isinstance(handler, RateLimited) for handler in logger.handlers):
        return
    logger.addHandler(RateLimited())
    logger.propagate = False
