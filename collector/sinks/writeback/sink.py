"""What the sinks that write into tools have in common; each tool's file says what its requests look like."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from collector.base.errors import Permanent, Retryable
from collector.base.http_client import TIMEOUT, Client, HttpTarget, Promise
from collector.base.net import is_loopback
from collector.config.sinks import Outlet
from collector.config.tree import Config
from collector.sinks.writeback.batches import Written, write_in_batches, write_one_by_one
from collector.sinks.writeback.score import ScoreShape, WrittenScore
from collector.sinks.writeback.writer import ScoreWriter

TRIAL_TIMEOUT = 5.0  # seconds that a trial waits for an answer
Settings = TypeVar("Settings", bound=Outlet)


class WriteBack(ScoreWriter, Generic[Settings]):
    """A `Sink` that sets scores aside while its tool does not have their trace or session."""

    name: ClassVar[str]
    shape: ClassVar[ScoreShape]
    is_one_by_one: ClassVar[bool] = False  # whether a request holds one score
    trial: ClassVar[str] = ""  # the path of a question that changes nothing
    promised: ClassVar[Promise]  # of the answer to it

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
        self.client = Client(self.target(settings), timeout=timeout)
        asked = settings.evaluators
        shape = self.shape._replace(
            evaluators=None if asked is None else frozenset(asked),
            explanation=settings.explanation,
            page=page,
            tool=self.shape.tool or (self.name,),
        )
        super().__init__(shape, wait=settings.wait, clock=clock)

    @classmethod
    def target(cls, settings: Settings) -> HttpTarget:
        raise NotImplementedError

    @classmethod
    def trial_of(cls, settings: Settings) -> str:
        del settings
        return cls.trial

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        """One request. Raises as `write_in_batches` says."""
        raise NotImplementedError

    async def write(self, scores: Sequence[WrittenScore], written: Written) -> None:
        write = write_one_by_one if self.is_one_by_one else write_in_batches
        await write(scores, self.send, written)

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = cast("Settings | None", getattr(config.sinks, cls.name))
        return None if section is None else cls(section, page=page_of(config))

    @classmethod
    async def reachable(cls, config: Config) -> str | None:
        section = cast(Settings, getattr(config.sinks, cls.name))
        client = Client(cls.target(section), timeout=TRIAL_TIMEOUT)
        try:
            await client.ask("GET", cls.trial_of(section), promised=cls.promised)
        except (Retryable, Permanent) as error:
            prefix = f"sinks.{cls.name}"
            text = str(error)
            return text if text.startswith(prefix) else f"{prefix}.endpoint: {text}"
        finally:
            await client.close()
        return None

    async def close(self, deadline: float) -> None:
        async with asyncio.timeout(deadline):
            await self.client.close()


def target(
    name: str,
    settings: Outlet,
    *credentials: str,
    secrets: Sequence[str],
    places: Sequence[str] = ("endpoint",),
    headers: dict[str, str] | None = None,
    auth: tuple[str, str] | None = None,
) -> HttpTarget:
    """The target of a section `sinks.<name>`, whose `credentials` and `places` are settings."""
    section, given = f"sinks.{name}", cast(Any, settings)
    return HttpTarget(
        section=section,
        endpoint=given.endpoint.rstrip("/"),
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
