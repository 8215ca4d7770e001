"""From gauges to a target, and over a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from prometheus_client import Gauge

from collector.base.telemetry import Telemetry
from collector.config.notify import Notify
from collector.log.port import WINDOWS
from collector.notices import notices_room
from collector.notices.messenger import Messenger, TargetLoop
from collector.notices.notices_room import NoticesRoom
from collector.records.notices import NOTICES
from collector.records.standing import Fault, Standing, WindowMean
from tests.support.faulty_log import FaultyLog
from tests.support.loopback import Stub, stub
from tests.support.standings import drop

LABELS = {"service": "shop", "agent": "clerk", "fault": "tool_failed", "tool": "find_order"}
STANDING = Standing(
    service="shop",
    agent="clerk",
    reliability=WindowMean(mean=0.2, lower=0.1, upper=0.3, samples=25, since=1.0),
    window_reliability=WindowMean(mean=0.8, lower=0.7, upper=0.9, samples=200),
    faults=(
        Fault(
            fault="tool_failed",
            tool="find_order",
            since=1.0,
            uses=25,
            failures=25,
            uses_before=60,
            failures_before=0,
            sessions=("s-4", "s-3", "s-2", "s-1"),
            worst=("s-2", "s-4", "s-1"),
        ),
    ),
)


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    async with stub() as made:
        yield made
    while _made:
        await _made.pop().target_loop.messenger.close()


_made: list[Stand] = []
"""What the test has made."""


class Stand:
    """A process: its families, its room, and one target."""

    def __init__(self, log: FaultyLog, server: Stub, **settings: Any) -> None:
        self.telemetry = Telemetry()
        self.gauge, since = (
            Gauge(f"spanwise_fault_{each}", "A gauge.", [*LABELS], registry=self.telemetry.registry)
            for each in ("detected", "since_timestamp_seconds")
        )
        since.labels(**LABELS).set(log.clock() - 60)
        given = {"to": {"hook": {"webhook": server.url}}, "page": "https://spanwise.example.com/"}
        self.settings = Notify.model_validate({**given, **settings})
        self.room = NoticesRoom(
            self.settings,
            log=log,
            telemetry=self.telemetry,
            standings=lambda: {("shop", "clerk"): STANDING},
            caught_up=lambda: True,
            clock=log.clock,
            wall=log.clock,
        )
        self.target_loop = TargetLoop(
            Messenger("hook", self.settings.to["hook"]),
            self.room._alarms,
            notice=self.room._notice,
            store=self.room._store,
            clock=log.clock,
            wall=log.clock,
        )
        _made.append(self)

    async def look(self, value: float) -> None:
        self.gauge.labels(**LABELS).set(value)
        await self.room.look()
        await self.target_loop.step()

    def count(self, result: str) -> float | None:
        labels = {"target": "hook", "result": result}
        return self.telemetry.registry.get_sample_value("spanwise_notices_total", labels)


class WriteGate(asyncio.Event):
    """Says when a write has come to it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.reached.set()
        return await super().wait()


def states(server: Stub) -> list[str]:
    return [each.body["type"] for each in server.requests]


FIRING, RESOLVED = "spanwise.alert.firing.v1", "spanwise.alert.resolved.v1"


async def test_a_fault_is_sent_with_its_sessions_and_the_window(server: Stub) -> None:
    log = FaultyLog()
    stand = Stand(log, server)

    await stand.look(1)

    (asked,) = server.requests
    data = asked.body["data"]
    assert data["annotations"]["summary"] == "clerk (shop): find_order fails"
    assert data["annotations"]["page"] == "https://spanwise.example.com/?service=shop&agent=clerk"
    assert data["sessions"] == ["s-2", "s-4", "s-1"]
    assert data | {"mean": 0.8, "lower_bound": 0.7, "upper_bound": 0.9, "samples": 200} == data
    assert stand.count("sent") == 1


def test_a_drop_names_the_sessions_of_its_cause_else_its_own() -> None:
    other = drop(evaluator="agent_consistency", mean_rank=0.1, worst=("c-1", "s-4"))
    unknown = replace(STANDING, drops=(drop(worst=("s-9", "s-8")), other))
    known = replace(
        unknown, drops=(drop(worst=("s-9", "s-8"), cause=("tool_failed", "find_order")),)
    )
    scope = {"service": "shop", "agent": "clerk", "scope": "session"}

    assert notices_room._sessions(unknown, scope) == ("c-1", "s-4", "s-9")
    assert notices_room._sessions(known, scope) == ("s-2", "s-4", "s-1")
    assert notices_room._sessions(unknown, {**scope, "scope": "trace"}) == ()
    assert notices_room._sessions(None, scope) == ()


async def test_a_notice_is_counted_once_a_restart_knows_of_it(server: Stub) -> None:
    log = FaultyLog()
    stand = Stand(log, server)
    stand.gauge.labels(**LABELS).set(1)
    await stand.room.look()
    log.gate = WriteGate()

    sending = asyncio.create_task(stand.target_loop.step())
    await log.gate.reached.wait()
    counted_early = stand.count("sent")
    log.gate.set()
    await sending

    assert states(server) == [FIRING]
    assert (counted_early, stand.count("sent")) == (0, 1)


async def test_after_a_restart_nothing_comes_twice_and_the_end_comes(server: Stub) -> None:
    log = FaultyLog()
    stand = Stand(log, server)
    await stand.look(1)

    log.restart()
    again = Stand(log, server)
    await again.room._restore()
    await again.look(1)
    assert states(server) == [FIRING]
    log.clock.now += 15
    await again.look(0)

    assert states(server) == [FIRING, RESOLVED]
    assert [
        each for each in log.stored(WINDOWS) if each.key.startswith(NOTICES) and each.value
    ] == []


async def test_an_alert_that_is_not_asked_for_is_not_sent(server: Stub) -> None:
    stand = Stand(FaultyLog(), server, alerts=["AgentScoreDrop"])

    await stand.look(1)

    assert server.requests == []


async def test_a_record_that_cannot_be_read_is_counted_and_passed_over(server: Stub) -> None:
    log = FaultyLog()
    log.append(WINDOWS, b"\xff", key=NOTICES + b"x")
    stand = Stand(log, server)

    await stand.room._restore()
    await stand.look(1)

    poison = {"topic": WINDOWS}
    assert states(server) == [FIRING]
    assert stand.telemetry.registry.get_sample_value("spanwise_poison_records_total", poison) == 1
