"""A version of an agent ends when others have sessions and it has none; its sessions leave every window.

When one ends: tests/property/watch/test_versions_order.py.
"""

from typing import Any

import pytest

from collector.base.telemetry import OTHER
from collector.records.comparison import VersionWindow
from collector.records.signal import Signal
from tests.support.publisher import Publisher
from tests.support.signals import BASE, covered, signal

MINUTE = 60.0


def session(version: str, minute: float, score: float = 0.2, **fields: Any) -> Signal:
    at = BASE + minute * MINUTE
    return signal(
        f"s-{version}-{minute}", None, score=score, agent_version=version, at=at, **fields
    )


def shown(publisher: Publisher) -> dict[str, float]:
    """By version, its reliability."""
    return {
        labels[2]: round(value, 6)
        for (name, labels), value in publisher.gauges().items()
        if name == "spanwise_agent_reliability_ratio"
    }


async def test_a_fixed_release_ends_the_version_before_it_and_clears_its_bounds() -> None:
    publisher = Publisher()
    await publisher.publish(*(session("1", n) for n in range(40)))
    await publisher.publish(*(signal(f"t{n}", f"t{n}", score=0.0, agent_version="1") for n in "ab"))

    await publisher.publish(*(session("2", 40 + n, 0.9) for n in range(15)))

    assert shown(publisher) == {"1": 0.2, "2": 0.9}
    assert publisher.value("window_samples", scope="session") == 55

    await publisher.publish(session("2", 55, 0.9))

    assert shown(publisher) == {"2": 0.9}
    assert publisher.value("window_samples", scope="session") == 16
    assert publisher.value("window_mean_ratio", scope="session") == pytest.approx(0.9)
    assert publisher.value("window_mean_ratio", scope="trace") is None  # only version 1 had some
    assert publisher.value("version_sessions", agent_version="1") is None
    assert publisher.value("version_sessions", agent_version="2") == 16
    newest = publisher.value("version_last_session_timestamp_seconds", agent_version="2")
    assert newest == BASE + 55 * MINUTE


async def test_versions_of_agents_that_share_their_labels_do_not_end_each_other() -> None:
    publisher = Publisher()

    for n in range(33):
        await publisher.publish(session("1" if n < 3 else "2", n, agent=OTHER))

    assert set(shown(publisher)) == {"1", "2"}


async def test_sessions_without_a_score_are_sessions_of_their_version() -> None:
    publisher = Publisher()
    unseen: dict[str, Any] = {"outcome": "skipped", "success": None, "coverage": covered(4, 1)}

    await publisher.publish(session("1", 0), signal("s-2", None, score=None, agent_version="1"))
    await publisher.publish(signal("s-3", None, score=None, agent_version="1", **unseen))

    assert publisher.value("version_sessions") == 2
    assert publisher.value("window_samples") == 1


def looked(window: VersionWindow) -> tuple[str | None, list[int]]:
    """The version before it, and its sessions at each look."""
    assert window.looks is not None
    return window.looks.baseline, [each.sessions for each in window.looks.looks]


async def test_a_version_that_has_ended_is_compared_after_a_restart_too() -> None:
    publisher = Publisher()
    await publisher.publish(*(session("1", n, 0.9) for n in range(25)))
    await publisher.publish(*(session("2", 25 + n, 0.2) for n in range(22)))
    agent = ("support-bot", "planner")

    await publisher.exporter.finish()
    held = publisher.exporter.versions(agent, "agent_reliability")

    assert shown(publisher) == {"2": 0.2}
    assert {name: len(each.entries) for name, each in held.items()} == {"1": 25, "2": 22}
    assert [looked(each) for each in held.values()] == [(None, []), ("1", [20])]
    labels = {"agent_version": "2", "baseline": "1"}
    assert publisher.value("version_rank_ratio", **labels) == 0.0
    assert publisher.value("version_rank_upper_bound_ratio", **labels) == 0.0
    after = publisher.successor()
    await after.step()
    assert after.exporter.versions(agent, "agent_reliability") == held
    assert publisher.exporter.versions(("support-bot", "other"), "agent_reliability") == {}


async def test_a_look_stays_whatever_comes_later() -> None:
    """A canary beside a version that goes on: its looks are at what was there then."""
    publisher = Publisher()
    await publisher.publish(*(session("1", n / 100, 0.9) for n in range(40)))
    for n in range(25):
        await publisher.publish(
            session("2", 1 + n / 10, 0.2),
            *(session("1", 1 + n / 10 + k / 1000) for k in range(1, 30)),
        )
        await publisher.exporter.finish()
    canary = publisher.exporter.versions(("support-bot", "planner"), "agent_reliability")["2"]

    assert looked(canary) == ("1", [20])
    await publisher.publish(*(session("1", 5 + n / 100, 0.0) for n in range(400)))
    await publisher.exporter.finish()
    after = publisher.successor()
    await after.step()
    for each in (publisher, after):
        found = each.exporter.versions(("support-bot", "planner"), "agent_reliability")
        assert found["2"].looks == canary.looks
