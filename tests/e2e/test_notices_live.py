"""The real process tells a real Alertmanager and a webhook that an agent runs away, and that it is over."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_runaway_live import SETTINGS, calls, root
from tests.support.alertmanager import AlertmanagerServer
from tests.support.sender import send
from tests.support.service import Service
from tests.support.stuck_agent import stuck
from tests.support.tools.stub import Stub, stub

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LABELS = {
    "alertname": "AgentRunaway",
    "agent": "helper",
    "reason": "repeated_calls",
    "service": "shop",
    "severity": "page",
}


async def test_a_runaway_and_its_end_reach_alertmanager_and_a_webhook_once(tmp_path: Path) -> None:
    async with stub() as receiver, stub() as hook:
        with AlertmanagerServer(tmp_path / "alerts", receiver.url) as alerts:
            await asyncio.to_thread(_story, tmp_path, alerts, receiver, hook)

    assert [each.body["type"] for each in hook.requests] == [
        "spanwise.alert.firing.v1",
        "spanwise.alert.firing.v1",
        "spanwise.alert.resolved.v1",
    ]
    first, other, last = (each.body for each in hook.requests)
    assert other["subject"] != first["subject"] == last["subject"]


def _story(tmp_path: Path, alerts: AlertmanagerServer, receiver: Stub, hook: Stub) -> None:
    notify = (
        "notify.page=https://spanwise.example.com",
        f"notify.to.alerts.alertmanager={alerts.url}",
        f"notify.to.hook.webhook={hook.url}",
    )
    with Service(tmp_path / "data", *SETTINGS, *notify) as service:
        send(service.grpc, calls(10, 6))
        send(service.grpc, calls(20, 8))
        (alert,) = service.wait_for("the alert", alerts.alerts)
        service.wait_for("the notice", lambda: hook.requests)
        service.wait_for("that it was sent", _counts(service, "sent", 1))

        service.kill()
        service.start()
        send(service.grpc, stuck(f"{7:032x}"))
        service.wait_for("the next notice", lambda: "stock-keeper" in str(hook.requests[-1].body))
        send(service.grpc, root())
        service.wait_for("the end", lambda: len(hook.requests) > 2)
        service.wait_for("Alertmanager's end", lambda: _received(receiver, "resolved"))

    assert alert["labels"] == LABELS
    assert alert["annotations"]["summary"] == "helper (shop) is running away: repeated_calls"
    assert alert["annotations"]["page"] == "https://spanwise.example.com/?service=shop&agent=helper"
    assert (
        _received(receiver, "firing")[0]["labels"]
        == _received(receiver, "resolved")[0]["labels"]
        == LABELS
    )


def _counts(service: Service, result: str, count: int) -> Callable[[], bool]:
    name = f'spanwise_notices_total{{result="{result}",target="hook"}}'
    return lambda: service.metrics().get(name) == count


def _received(receiver: Stub, status: str) -> list[dict[str, Any]]:
    """What Alertmanager sent to its own receiver."""
    return [
        alert
        for each in receiver.requests
        for alert in each.body["alerts"]
        if alert["status"] == status
    ]
