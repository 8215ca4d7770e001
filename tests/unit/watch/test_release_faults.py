"""Fault watches count the sessions of each version: verdicts, gauges and pages read that."""

from collector.export import gauges
from collector.records.standing import VersionCount
from collector.records.windows import VersionUses
from collector.watch.faults.agent_faults import MAX_VERSIONS
from evaluators.formulas.fault_watch import Counts, EarlierUse
from evaluators.uses import SessionUses
from tests.support.fault_watches import AGENT, FAILED, FINE, Watcher, work
from tests.support.publisher import Publisher
from tests.support.signals import signal


async def sessions(
    watcher: Watcher, version: str, *uses: SessionUses, begin: int = 0, service: str = "bot"
) -> None:
    for number, each in enumerate(uses, begin):
        seen = watcher.log.clock.now
        name = f"{version}-{number}"
        await watcher.say(work(name, each, seen=seen, agent_version=version, service=service))
        watcher.log.clock.now += 60
    await watcher.step()


async def test_each_session_counts_once_for_its_version_over_a_restart_too() -> None:
    watcher = Watcher()
    await sessions(watcher, "1", *[FINE] * 40)
    await sessions(watcher, "2", FINE, *[FAILED] * 16)
    again = work("2-0", FAILED, turn="second", seen=watcher.log.clock.now, agent_version="2")
    await watcher.enter(again)
    await watcher.reader.finish()
    after = watcher.successor()
    await after.step()

    for each in (watcher, after):
        counts = [
            count for count in each.faults.of(AGENT).by_version() if count.fault == "tool_failed"
        ]
        assert counts == [
            VersionCount("1", "tool_failed", "find_order", Counts(40)),
            VersionCount("2", "tool_failed", "find_order", Counts(17, 17, 16, 16)),
        ]


async def test_the_versions_used_last_are_counted() -> None:
    watcher = Watcher()
    for version in range(MAX_VERSIONS + 2):
        await sessions(watcher, f"{version}", FINE)

    counted = {each.version for each in watcher.faults.of(AGENT).by_version()}
    assert counted == {f"{version}" for version in range(2, MAX_VERSIONS + 2)}


def test_the_newest_200_sessions_count() -> None:
    uses = VersionUses()
    for number in range(300):
        uses.count(number < 110, None)
    assert uses.counted[:2] == (200, 10)

    uses.count(True, EarlierUse(0, failed=False))
    uses.count(True, EarlierUse(0, failed=True))
    uses.count(False, EarlierUse(0, failed=False))
    assert uses.counted[:2] == (200, 11), "one session failed after all"


async def test_a_gauge_says_how_many_faults_fail_a_version() -> None:
    """Its scores are as good as before."""
    publisher, watcher = Publisher(), Watcher()
    for number in range(41):
        version = "1" if number < 25 else "2"
        await publisher.publish(signal(f"s-{number}", None, score=0.9, agent_version=version))
    await publisher.exporter.finish()
    service, agent = "support-bot", "planner"

    def value() -> float:
        (found,) = gauges.releases(publisher.exporter._targets, watcher.faults, 0.0)
        assert found[:2] == ("version_faults", (service, agent, "2", "1"))
        return found.value

    assert value() == 0
    await sessions(watcher, "1", *[FINE] * 40, service=service)
    await sessions(watcher, "2", *[FAILED] * 5, service=service)
    assert value() == 0, "five failures in a row are not enough"
    await sessions(watcher, "2", *[FAILED] * 11, begin=5, service=service)
    assert value() == 1
