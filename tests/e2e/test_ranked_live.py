"""Sessions are ranked by the real process: on the page's API and in the sinks, after kill -9, and the same offline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.command import evaluated
from tests.support.recordings import write
from tests.support.sender import Sender
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETTINGS = ("windows.trace.root_grace=200ms", "windows.session.idle=1s")
WARM = 11


def turn(number: int) -> agents.Turn:
    return agents.Turn(service="shop", session=f"s-{number}", number=number, loops=number >= WARM)


def final(signals: Sequence[dict[str, Any]], session: str) -> dict[str, Any] | None:
    found = (each for each in signals if each["evaluator"] == "work_baseline" and each["final"])
    return next((each for each in found if each["session_id"] == session), None)


def listed(service: Service, session: str) -> dict[str, Any] | None:
    return final(service.get(f"/api/v1/sessions/{session}?service=shop")["signals"], session)


def send(service: Service, *numbers: int) -> None:
    """Sessions in this order, which is that of their closing."""
    Sender(list(agents.requests([turn(each) for each in numbers])), lambda: service.grpc).run()
    for number in numbers:
        service.wait_for("the session's rank", lambda number=number: _ranked(service, number))


def _ranked(service: Service, number: int) -> bool:
    return final(service.signals(), f"s-{number}") is not None


def test_a_session_is_ranked_live_after_a_kill_and_offline_alike(tmp_path: Path) -> None:
    recording = tmp_path / "all.otlp"
    write(recording, agents.requests([turn(number) for number in range(WARM + 1)]))
    expected = evaluated(str(recording))

    with Service(tmp_path / "data", *SETTINGS) as service:
        send(service, *range(WARM))
        service.kill()
        service.start()
        send(service, WARM)
        signals = service.signals()
        shown = service.wait_for("the page's API", lambda: listed(service, f"s-{WARM}"))

    last = final(signals, f"s-{WARM}")
    assert last is not None
    assert (last["outcome"], last["success"], last["metadata"]["sessions"]) == (
        "scored",
        None,
        WARM,
    )
    assert last["score"] < 0.3, last["explanation"]
    assert shown["id"] == last["id"]
    for number in range(WARM + 1):
        live, again = (final(each, f"s-{number}") for each in (signals, expected))
        assert live is not None
        assert again is not None
        assert (live["id"], live["score"]) == (again["id"], again["score"])
