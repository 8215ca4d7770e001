"""How notices reach one target: over HTTP, again after failures, without a secret in any line."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from collector.base.errors import Permanent, Retryable
from collector.config.notify import NotifyTarget
from collector.notices import messenger
from collector.notices.alarms import Alarms
from collector.notices.messenger import APART, Messenger, TargetLoop
from tests.support.clocks import SetClock, eventually
from tests.support.loopback import TAKEN, Reply, Stub, stub
from tests.support.notices import BROKEN, DROPPED, SLOW, Looked, notice

SECRET = "T000/B000/s3cr3t"


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    async with stub() as made:
        yield made
    while _made:
        await _made.pop().messenger.close()


_made: list[Stand] = []
"""What the test has made."""


class Stand:
    """A target, its loop and what it is sent."""

    def __init__(self, server: Stub, kind: str = "slack", **more: Any) -> None:
        settings = NotifyTarget.model_validate({kind: f"{server.url}/{SECRET}", **more})
        server.answer = lambda _asked: TAKEN[kind]
        self.clock = SetClock(0.0)
        self.looked = Looked(Alarms({"chat": lambda _: True}))
        self.stored = 0
        self.messenger = Messenger("chat", settings)
        _made.append(self)
        self.target_loop = TargetLoop(
            self.messenger,
            self.looked.alarms,
            notice=lambda alarm: notice(labels=alarm.labels, state=alarm.state, end=alarm.end),
            store=self._store,
            clock=self.clock,
            wall=self.clock,
        )

    async def _store(self) -> None:
        self.stored += 1
        self.looked.alarms.pending()

    @property
    def counts(self) -> dict[str, int]:
        return {result: count for (_, result), count in self.looked.alarms.counts.items()}


async def test_what_is_due_goes_out_in_one_message_and_is_stored(server: Stub) -> None:
    stand = Stand(server)
    stand.looked.look(0, BROKEN, SLOW)

    assert await stand.target_loop.step() == APART
    assert await stand.target_loop.step() == APART

    (asked,) = server.requests
    assert asked.path == f"/{SECRET}"
    assert len(asked.body["blocks"]) == 2
    assert (stand.counts, stand.stored) == ({"sent": 2}, 1)


async def test_a_target_that_is_away_is_asked_again_ever_later(
    server: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    stand = Stand(server)
    stand.looked.look(0, BROKEN)
    server.replies = [Reply(503, SECRET), Reply(500), Reply(429, headers={"retry-after": "30"})]

    waits = [await stand.target_loop.step() for _ in range(4)]

    assert waits == [1.0, 2.0, 30.0, APART]
    assert stand.counts == {"retried": 3, "sent": 1}
    assert [each.levelno for each in caplog.records] == [logging.ERROR]
    assert "notify.to.chat does not take notices now: HTTP 503" in caplog.text
    assert SECRET not in caplog.text


async def test_a_message_that_is_refused_is_dropped_and_said_once_a_minute(
    server: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    stand = Stand(server)
    server.replies = [Reply(400, "invalid_blocks")] * 3
    for second, alert in ((0, BROKEN), (30, SLOW), (61, DROPPED)):
        stand.clock.now = second
        stand.looked.look(second, alert)
        await stand.target_loop.step()

    assert stand.counts["dropped"] == 2
    assert caplog.text.count("refuses a notice") == 1
    assert "invalid_blocks" in caplog.text
    assert SECRET not in caplog.text


async def test_after_an_hour_it_is_dropped(server: Stub) -> None:
    stand = Stand(server)
    stand.looked.look(0, BROKEN)
    server.answer = lambda _: Reply(503)

    for second in (0, 1800, 3601):
        stand.clock.now = second
        await stand.target_loop.step()

    assert stand.counts == {"retried": 3, "dropped": 1}
    assert stand.looked.alarms.due("chat") == []


async def test_an_alertmanager_is_sent_each_alert_again_each_minute(server: Stub) -> None:
    stand = Stand(server, "alertmanager")
    stand.looked.look(0, BROKEN)
    sent: list[int] = []
    for second in range(0, 125, 5):
        stand.clock.now = 1_700_000_000.0 + second
        await stand.target_loop.step()
        sent.append(len(server.requests))

    assert [sent.index(count) * 5 for count in (1, 2, 3)] == [0, 60, 120]
    assert stand.counts == {"sent": 1}


async def test_pagerduty_is_sent_one_alert_at_a_time(server: Stub) -> None:
    stand = Stand(server, "pagerduty", pagerduty="R0UTE", endpoint=server.url)
    stand.looked.look(0, BROKEN, SLOW)

    for _ in range(3):
        await stand.target_loop.step()

    assert [each.path for each in server.requests] == ["/v2/enqueue"] * 2
    assert len({each.body["dedup_key"] for each in server.requests}) == 2


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (404, Retryable, "notify.to.chat.slack: HTTP 404: no_service"),
        (400, Permanent, "HTTP 400 to POST ***: no_service"),
    ],
)
async def test_an_error_names_the_setting_and_not_the_address(
    server: Stub, status: int, kind: type[Exception], words: str
) -> None:
    stand = Stand(server)
    server.replies = [Reply(status, "no_service")]

    with pytest.raises(kind) as raised:
        await stand.messenger.send([notice()], 0.0)

    assert str(raised.value) == words


async def test_only_an_alertmanager_is_tried_without_sending_an_alert(server: Stub) -> None:
    chat, alerts = Stand(server), Stand(server, "alertmanager", alertmanager=server.url)
    server.answer = lambda _: Reply(403, "no")

    assert await chat.messenger.trial() is None
    said = await alerts.messenger.trial()

    assert said == "notify.to.chat.alertmanager: HTTP 403: no"
    assert [each.path for each in server.requests] == ["/api/v2/status"]


async def test_a_stop_does_not_wait_for_a_target_that_hangs(
    server: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messenger, "GRACE", 0.05)
    stand, stopping = Stand(server), asyncio.Event()
    stand.looked.look(0, BROKEN)
    server.answer = lambda _: Reply(hangs=True)

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.target_loop.run(stopping))
        await eventually(lambda: bool(server.requests))
        stopping.set()

    assert len(stand.looked.alarms.due("chat")) == 1
    assert stand.counts == {}


async def test_what_ends_while_it_is_being_sent_is_sent_as_over(server: Stub) -> None:
    stand = Stand(server)
    stand.looked.look(0, BROKEN)
    began = threading.Event()

    def answer(_: object) -> Reply:
        began.set()
        assert go_on.wait(10)
        return TAKEN["slack"]

    go_on = threading.Event()
    server.answer = answer
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.target_loop.step())
        await asyncio.to_thread(began.wait, 10)
        stand.looked.look(15)
        await stand._store()  # as every look does
        go_on.set()
    await stand.target_loop.step()

    texts = [each.body["text"] for each in server.requests]
    assert [text.split(":")[0] for text in texts] == ["page", "page over"]
    assert stand.counts == {"sent": 2}


async def test_what_ends_while_it_could_not_be_sent_is_superseded(server: Stub) -> None:
    stand = Stand(server)
    stand.looked.look(0, BROKEN)

    def answer(_: object) -> Reply:
        stand.looked.look(15)
        return Reply(503)

    server.answer = answer
    await stand.target_loop.step()
    server.answer = lambda _: Reply()
    await stand.target_loop.step()

    assert len(server.requests) == 1
    assert stand.counts == {"retried": 1, "superseded": 1}
    assert list(stand.looked.alarms.pending().values()) == [None]
