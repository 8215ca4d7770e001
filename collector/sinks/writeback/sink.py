"""What the sinks that write into tools have in common; each tool's file says what its requests look like."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from collector.base.errors import Permanent, Retryable
from collector.base.http_client import TIMEOUT, Client, HttpTarget, Promise
from collector.base.net import is_loopback
from collector.config.sinks import Outlet
from collector.config.tree import Config
from collector.log.port import Position
from collector.records.signal_batch import Published
from collector.sinks.writeback.batches import Written
from collector.sinks.writeback.score import ScoreShape, WrittenScore
from collector.sinks.writeback.writer import ScoreWriter

TRIAL_TIMEOUT = 5.0  # seconds that a trial waits for an answer
Settings = TypeVar("Settings", bound=Outlet)


class WriteBack(Generic[Settings]):
    """A `Sink` that sets scores aside while its tool does not have their trace or session (`SetsAside`)."""

    name: ClassVar[str]
    shape: ClassVar[ScoreShape]
    promised: ClassVar[Promise]  # of the answer to `trial`

    def __init__(
        self,
        settings: Settings,
        *,
        page: str | None = None,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write where `settings` say; `page` is where links to Spanwise's own page lead."""
        self.settings = settings
        self.clock = clock
        self.client = Client(self.target(settings), timeout=timeout)
        asked = settings.evaluators
        shape = self.shape._replace(
            evaluators=None if asked is None else frozenset(asked),
            explanation=settings.explanation,
            page=page,
            tool=(self.name, "ddtrace") if self.name == "datadog" else (self.name,),
        )
        self._writer = ScoreWriter(self, shape, wait=settings.wait, now=clock)

    @classmethod
    def target(cls, settings: Settings) -> HttpTarget:
        raise NotImplementedError

    @classmethod
    def trial(cls, settings: Settings) -> str:
        raise NotImplementedError

    async def write(self, scores: Sequence[WrittenScore], written: Written) -> None:
        raise NotImplementedError

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = cast("Settings | None", getattr(config.sinks, cls.name))
        return None if section is None else cls(section, page=page_of(config))

    @classmethod
    async def reachable(cls, config: Config) -> str | None:
        section = cast(Settings, getattr(config.sinks, cls.name))
        client = Client(cls.target(section), timeout=TRIAL_TIMEOUT)
        try:
            await client.ask("GET", cls.trial(section), promised=cls.promised)
        except (Retryable, Permanent) as error:
            prefix = f"sinks.{cls.name}"
            text = str(error)
            return text if text.startswith(prefix) else f"{prefix}.endpoint: {text}"
        finally:
            await client.close()
        return None

    @property
    def waiting(self) -> Collection[Position]:
        return self._writer.waiting

    @property
    def unmatched(self) -> int:
        return self._writer.unmatched

    async def deliver(self, signals: Sequence[Published]) -> None:
        await self._writer.deliver(signals)

    async def again(self) -> None:
        await self._writer.again()

    def forget(self, partition: int) -> None:
        self._writer.forget(partition)

    async def close(self, deadline: float) -> None:
        async with asyncio.timeout(deadline):
            await self.client.close()


def target(
    settings: Outlet,
    *,
    name: str,
    endpoint: str,
    headers: dict[str, str] | None = None,
    credentials: Sequence[str],
    places: Sequence[str] = ("endpoint",),
    secrets: Sequence[str] = (),
    auth: tuple[str, str] | None = None,
) -> HttpTarget:
    """The target of a section `sinks.<name>`."""
    section = f"sinks.{name}"
    return HttpTarget(
        section=section,
        endpoint=endpoint.rstrip("/"),
        headers=headers or {},
        secrets=tuple(secrets),
        credentials=tuple(f"{section}.{each}" for each in credentials),
        places=tuple(f"{section}.{each}" for each in places),
        auth=auth,
        ca_file=None if settings.ca_file is None else str(settings.ca_file),
        proxy=settings.proxy,
    )


def page_of(config: Config) -> str | None:
    """Where links to the page lead; None: it has no address that others could follow."""
    admin: Any = config.admin
    if is_loopback(admin.host) and admin.port:
        return f"http://{admin.host}:{admin.port}"
    return None
