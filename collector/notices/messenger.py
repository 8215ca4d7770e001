"""Tells one target, at most once a second, and again until it takes it. A slow or dead target delays no other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from collector.base.clock import Clock
from collector.base.errors import Permanent, Retryable
from collector.base.http_client import Client, HttpTarget, has
from collector.base.retry import Backoff, Seldom
from collector.config.notify import NotifyTarget
from collector.config.values import is_url
from collector.notices.alarms import Alarms, RaisedAlert
from collector.notices.notice import Notice
from collector.notices.targets.alertmanager import Alertmanager
from collector.notices.targets.pagerduty import ENDPOINT, PagerDuty
from collector.notices.targets.port import TargetKind
from collector.notices.targets.slack import Slack
from collector.notices.targets.teams import Teams
from collector.notices.targets.webhook import Webhook
from collector.records.notices import State

_log = logging.getLogger(__name__)

APART = 1.0  # seconds between two messages, and between two looks at what is due
GRACE = 3.0  # seconds that a stop leaves to a message under way
_MOST_BACKOFF = 60.0
"""Seconds between two attempts at a target that is down; a notice of a drop is late by a minute at most."""


class Messenger:
    def __init__(self, name: str, settings: NotifyTarget) -> None:
        self.name = name
        self.kind = _kind(settings)
        self._client = Client(_target(name, settings))

    async def send(self, notices: Sequence[Notice], now: float) -> None:
        """Tell these, at most `kind.most`. Raises Retryable: not now. Raises Permanent: never."""
        request = self.kind.request(notices, now)
        await self._client.ask(
            "POST",
            request.url,
            request.body,
            headers=request.headers,
            promised=self.kind.is_taken,
        )

    async def trial(self) -> str | None:
        """What an Alertmanager answers to a question; None: all right, or a kind that answers none."""
        if isinstance(self.kind, Alertmanager):
            try:
                await self._client.ask("GET", self.kind.status_url, promised=has("versionInfo"))
            except (Retryable, Permanent) as error:
                return str(error)
        return None

    async def close(self) -> None:
        await self._client.close()


@dataclass
class TargetLoop:
    """`notice`: what an alarm says now; `store`: keeps what was sent; `wall`: the machine's clock."""

    messenger: Messenger
    alarms: Alarms
    notice: Callable[[RaisedAlert], Notice]
    store: Callable[[], Awaitable[None]]
    clock: Clock
    wall: Clock
    _repeated: float = 0.0

    def __post_init__(self) -> None:
        self._backoff = Backoff(first=APART, longest=_MOST_BACKOFF)
        self._failures = Seldom(self.clock)

    async def run(self, stopping: asyncio.Event) -> None:
        try:
            while not stopping.is_set():
                wait = await self._step(stopping)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await stopping.wait()
        finally:
            await self.messenger.close()

    async def _step(self, stopping: asyncio.Event) -> float:
        """A step, of which a stop cuts off what takes longer than `GRACE`: it is sent after the next start."""
        step, stop = asyncio.create_task(self.step()), asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((step, stop), return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                await asyncio.wait((step,), timeout=GRACE)
        finally:
            stop.cancel()
            step.cancel()
            await asyncio.wait((step, stop))
        return APART if step.cancelled() else step.result()

    async def step(self) -> float:
        """Send one message, if anything is due; the seconds to wait until the next one."""
        now = self.clock()
        name, kind = self.messenger.name, self.messenger.kind
        due = self.alarms.due(name)[: kind.most]
        repeats = kind.repeats is not None and now - self._repeated >= kind.repeats
        known = self.alarms.known(name)[: kind.most - len(due)] if repeats else []
        if not due and not known:
            return APART
        states: list[State] = [each.state for each in due]
        with self.alarms.sending(name, due):
            try:
                await self.messenger.send(
                    [self.notice(each) for each in (*due, *known)], self.wall()
                )
            except Retryable as error:
                return await self._failed(len(due), error, now)
            except Permanent as error:
                self._say(f"refuses a notice: {error}")
                for each in due:
                    self.alarms.drop(name, each)
            else:
                self._backoff.reset()
                for each, state in zip(due, states, strict=True):
                    self.alarms.was_sent(name, each, state)
        if repeats:
            self._repeated = now
        await self.store()
        return APART

    async def _failed(self, count: int, error: Retryable, now: float) -> float:
        self.alarms.counts[self.messenger.name, "retried"] += count
        self._say(f"does not take notices now: {error}")
        if self.alarms.expire(self.messenger.name, now):
            await self.store()
        return max(self._backoff.next(), error.after or 0.0)

    def _say(self, what: str) -> None:
        if self._failures.due():
            _log.error("notify.to.%s %s", self.messenger.name, what)


def _kind(settings: NotifyTarget) -> TargetKind:
    def text(name: str) -> str:
        return getattr(settings, name).get_secret_value()

    match settings.kind:
        case "slack":
            return Slack(text("slack"))
        case "teams":
            return Teams(text("teams"))
        case "pagerduty":
            return PagerDuty(text("pagerduty"), settings.endpoint or ENDPOINT)
        case "alertmanager":
            return Alertmanager(settings.alertmanager or "")
        case _:
            secret = settings.secret
            return Webhook(text("webhook"), None if secret is None else secret.get_secret_value())


def _target(name: str, settings: NotifyTarget) -> HttpTarget:
    path = f"notify.to.{name}"
    secrets: list[str] = [
        value.get_secret_value()
        for each in ("slack", "teams", "pagerduty", "webhook", "secret")
        if (value := getattr(settings, each)) is not None
    ]
    secrets += [urlsplit(each).path.strip("/") for each in secrets if is_url(each)]
    setting = f"{path}.{settings.kind}"
    return HttpTarget(
        section=path,
        endpoint="",
        headers={},
        secrets=tuple(secrets),
        credentials=(setting,),
        places=(setting,),
        ca_file=None if settings.ca_file is None else str(settings.ca_file),
        proxy=settings.proxy,
    )
