"""The one way in which scores reach a tool; the tool's own file says what its requests look like."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from msgspec.structs import replace

from collector.base.errors import Permanent, Retryable, Undecodable
from collector.base.http_client import TIMEOUT, Client, HttpTarget, Promise
from collector.base.net import is_loopback
from collector.config.sinks import Outlet
from collector.config.tree import Config
from collector.log.port import Position
from collector.records.signal_batch import Published
from collector.sinks.port import Refused
from collector.sinks.writeback.batches import MOST, Written, write_in_batches, write_one_by_one
from collector.sinks.writeback.score import (
    ScoreShape,
    WrittenScore,
    WrittenSubject,
    is_asked_for,
    score_of,
)
from collector.sinks.writeback.set_aside import SetAside

TRIAL_TIMEOUT = 5.0  # seconds that a trial waits for an answer
KNOWN = 100_000  # the newest writes that are remembered: what they wrote can be taken away again
Settings = TypeVar("Settings", bound=Outlet)


class WriteBack(Generic[Settings]):
    """A `Sink` that brings the scores of signals to a tool, each to its one place.

    It sets scores aside while the tool does not have their trace or session (`SetsAside`).
    """

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
        """Write where `settings` say; `page` is where links to Spanwise's own page lead.

        `clock`: seconds of a clock that never goes back.
        """
        self.settings = settings
        self.client = Client(self.target(settings), timeout=timeout)
        asked = settings.evaluators
        self._shape = self.shape._replace(
            evaluators=None if asked is None else frozenset(asked),
            explanation=settings.explanation,
            page=page,
            tool=self.shape.tool or (self.name,),
        )
        self.clock = clock
        self._aside = SetAside(settings.wait)
        self._places: OrderedDict[str, WrittenSubject] = OrderedDict()
        """Where the newest writes of this process are, by key."""
        self._unplaceable = 0

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
        """Write or take away each score, no two of which have the same key; `written` says what became of them.

        Raises Retryable: not all of them could be written now.
        """
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

    @property
    def waiting(self) -> Collection[Position]:
        return self._aside.positions

    @property
    def unmatched(self) -> int:
        """Signals so far whose trace or session the tool never had."""
        return self._aside.given_up + self._unplaceable

    async def deliver(self, signals: Sequence[Published]) -> None:
        scores, refused, unplaceable = self._scores(signals)
        ready = [each for each in scores if each.subject not in self._aside]
        written = await self._write(ready)
        now = self.clock()
        missing = [each for each in ready if each.subject in written.missing]
        behind = [each for each in scores if each.subject in self._aside]
        for each in (*missing, *behind):
            if each.is_gone:  # there is nothing to take away where there is no subject
                self._aside.drop(each.key)
            else:
                self._aside.put(each, now)
        self._unplaceable += unplaceable
        refused |= written.refused
        if refused:
            raise Refused(refused)

    async def again(self) -> None:
        """Try what was set aside and is due. Raises Retryable: not now. Raises Refused: some can never be written."""
        written = await self._write(self._aside.due(self.clock(), MOST))
        for subject in written.missing:
            self._aside.is_missing(subject, self.clock())
        if written.refused:
            raise Refused(written.refused)

    def forget(self, partition: int) -> None:
        self._aside.forget(partition)

    def _scores(
        self, signals: Iterable[Published]
    ) -> tuple[Collection[WrittenScore], dict[Position, str], int]:
        """The newest of each key, in the order of the log; what is not a signal, and how many have no place."""
        newest: dict[str, WrittenScore] = {}
        refused: dict[Position, str] = {}
        unplaceable = 0
        for each in signals:
            try:
                if not is_asked_for(each, self._shape):
                    continue
                score = score_of(each, self._shape)
            except Undecodable as error:
                refused[each.position] = str(error)
                continue
            if score is None:
                unplaceable += each.header.outcome == "scored" and each.header.method != "external"
            elif self._is_news(score, newest):
                newest.pop(score.key, None)
                newest[score.key] = score
        return newest.values(), refused, unplaceable

    def _is_news(self, score: WrittenScore, newest: Collection[str]) -> bool:
        if not self._shape.replaces:
            return not score.is_gone and score.key not in newest and score.key not in self._places
        return not score.is_gone or score.key in newest or self._may_stand(score)

    def _may_stand(self, score: WrittenScore) -> bool:
        """Whether the tool may have an earlier score of this key. Most subjects never had one: nothing is sent then."""
        if score.key in self._places or score.subject in self._aside:
            return True
        return score.signal.scope == "trace" and score.signal.revision > 0

    async def _write(self, scores: Sequence[WrittenScore]) -> Written:
        written = Written()
        if not scores:
            return written
        moved = [
            replace(each, subject=old, value=None, error=None)
            for each in scores
            if (old := self._places.get(each.key, each.subject)) != each.subject
        ]
        if moved:  # their session has another newest trace now
            await self.write(moved, Written())
        await self.write(scores, written)
        for each in scores:
            if each.subject not in written.missing:
                self._aside.drop(each.key)
            if written.is_written(each):
                self._remember(each)
        return written

    def _remember(self, score: WrittenScore) -> None:
        self._places.pop(score.key, None)
        if score.is_gone:
            return
        self._places[score.key] = score.subject
        if len(self._places) > KNOWN:
            self._places.popitem(last=False)


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
