"""Notices as their vendors read them: a real Alertmanager, and the models of Slack, Teams and the webhook standards."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import Gauge

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.config.notify import Notify
from collector.notices.messenger import Messenger, TargetLoop
from collector.notices.notice import Notice
from collector.notices.notices_room import NoticesRoom
from collector.notices.targets.slack import Slack
from collector.notices.targets.teams import Teams
from collector.notices.targets.webhook import Webhook
from tests.support.clocks import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.loopback import Stub, stub
from tests.support.notices import notice
from tests.support.processes import installed, ran
from tests.support.prometheus import AlertmanagerServer
from tests.support.tools.tool import check_bodies

pytestmark = pytest.mark.e2e

HOSTILE = "<!channel> *bold* [x](http://evil) & `c` _i_ \u202e"
NOTICES = (
    notice(),
    notice(state="resolved", end=1_700_000_300.0),
    notice(page=None),
    notice(summary=HOSTILE, description=HOSTILE),
    notice(summary="s" * 9000, description="d" * 90_000),
)


def body(kind: Slack | Teams, *notices: Notice) -> Any:
    return msgspec.json.decode(msgspec.json.encode(kind.request(notices, 0.0).body))


def test_slacks_own_models_take_every_block() -> None:
    kind = Slack("https://hooks.example/x")

    check_bodies("slack", [body(kind, each) for each in NOTICES] + [body(kind, *NOTICES)])


def test_microsofts_own_parser_has_nothing_to_say_about_a_card() -> None:
    folder = installed("adaptivecards", "cards for Teams are")
    kind = Teams("https://teams.example/x")
    node = shutil.which("node")
    assert node is not None

    done = ran(
        node,
        folder / "check.cjs",
        input=json.dumps([body(kind, each) for each in NOTICES] + [body(kind, *NOTICES)]),
    )

    assert done.returncode == 0, done.stderr[-2000:]


def test_a_webhook_is_verified_by_the_standards_own_libraries() -> None:
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
    kind = Webhook("https://hook.example/x", secret)
    requests = [kind.request([each], wall()) for each in NOTICES]

    check_bodies(
        "webhook",
        [
            {
                "secret": secret,
                "body": msgspec.json.encode(each.body).decode(),
                "headers": each.headers,
            }
            for each in requests
        ],
    )


# --- a real Alertmanager ---------------------------------------------------------------------------------------------


@pytest.fixture
async def receiver() -> AsyncIterator[Stub]:
    async with stub() as made:
        yield made


LABELS = {
    "alertname": "AgentScoreDrop",
    "agent": "clerk",
    "scope": "session",
    "service": "shop",
    "severity": "ticket",
}


async def test_alertmanager_shows_a_drop_and_its_end(receiver: Stub, tmp_path: Path) -> None:
    log, telemetry = FaultyLog(), Telemetry()
    names = ("service", "agent", "evaluator", "scope")
    dropped = Gauge(
        "spanwise_drift_detected", "As of the exporter.", names, registry=telemetry.registry
    )
    with AlertmanagerServer(tmp_path, receiver.url) as server:
        settings = Notify.model_validate({"to": {"alerts": {"alertmanager": server.url}}})
        room = NoticesRoom(
            settings,
            log=log,
            telemetry=telemetry,
            standings=dict,
            caught_up=lambda: True,
            clock=log.clock,
            wall=wall,
        )
        target_loop = TargetLoop(
            Messenger("alerts", settings.to["alerts"]),
            room._alarms,
            notice=room._notice,
            store=room._store,
            clock=log.clock,
            wall=wall,
        )
        for value, seconds in ((1, 60), (1, 15), (0, 0)):
            for evaluator in ("agent_reliability", "agent_consistency"):
                dropped.labels("shop", "clerk", evaluator, "session").set(value)
            await room.look()
            await target_loop.step()
            if value and room._alarms.known("alerts"):
                shown = await asyncio.to_thread(server.alerts)
                assert [each["labels"] for each in shown] == [LABELS]
            log.clock.now += seconds
        await eventually(lambda: "resolved" in str([each.body for each in receiver.requests]))
        await target_loop.messenger.close()

    sent = [
        (each["status"], each["labels"]) for r in receiver.requests for each in r.body["alerts"]
    ]
    assert sent == [("firing", LABELS), ("resolved", LABELS)]
