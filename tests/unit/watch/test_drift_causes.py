"""A drop's strength, the fault that explains it, and what is only a mark."""

from collections import deque
from typing import Any

import pytest
from msgspec.structs import replace

from collector.watch.drift.detector import DriftDetector
from collector.watch.drift.detectors import DriftDetectors
from collector.watch.settling import Update, digest_of
from collector.watch.windows.target import Labels
from evaluators.formulas.past_limits import DAY, PastLimits
from evaluators.formulas.recent_uses import SAME, RecentUses
from tests.support.fault_watches import AGENT, FAILED, FINE, Watcher
from tests.support.state_tables import give_back

MINUTE = 60.0
LIMITS = PastLimits()
GOOD = [0.7 + 0.01 * (number % 20) for number in range(300)]


def watched(evaluator: str = "agent_reliability") -> DriftDetectors:
    drops = DriftDetectors(LIMITS, settle=0.0)
    drops.log_time.own(0)
    labels = Labels(*AGENT, evaluator, "session")
    drops._add(labels, DriftDetector(labels, LIMITS))
    return drops


def live(
    drops: DriftDetectors, scores: list[float], *, begin: int = 0, every: float = MINUTE
) -> None:
    """A session each minute, the first one at minute `begin`."""
    (watch,) = drops
    for number, score in enumerate(scores, begin):
        at, name = number * every, f"s-{number}"
        update = Update(name, digest_of(name), (1, True), at, at, 0, number)
        watch.offer(update, score, due=at, version="1")
    deque(drops.entering({0: (begin + len(scores)) * every}), maxlen=0)


def explain(drops: DriftDetectors, watcher: Watcher) -> None:
    deque(drops.explain(watcher.faults), maxlen=0)


def shown(drops: DriftDetectors) -> Any:
    found = drops.by_agent().get(AGENT, ())
    return found[0] if found else None


def test_a_total_failure_is_strong_soon_after_it_is_noticed() -> None:
    drops = watched()
    live(drops, [*GOOD, *[0.0] * 10])
    noticed = shown(drops)
    assert noticed is not None
    assert not noticed.strong

    live(drops, [0.0] * 20, begin=310)

    assert shown(drops).strong


def test_a_slight_drop_is_noticed_and_never_strong() -> None:
    drops = watched()
    live(drops, [*GOOD, *(each - 0.04 for each in GOOD)])

    assert shown(drops) is not None
    assert not shown(drops).strong


@pytest.mark.parametrize("evaluator", ["work_baseline", "task_agreement"])
def test_how_much_work_it_was_never_wakes_anybody(evaluator: str) -> None:
    drops = watched(evaluator)
    live(drops, [*GOOD, *[0.0] * 60])

    assert shown(drops) is not None
    assert not shown(drops).strong


def test_a_change_of_work_is_only_a_mark_in_the_first_two_weeks() -> None:
    for began, is_alarm in ((0, False), (15 * DAY, True)):
        drops = watched("work_baseline")
        live(drops, [0.5], begin=1)
        start = int(began / MINUTE) or 2
        live(drops, GOOD, begin=start)
        live(drops, [0.0] * 60, begin=start + 300)

        (watch,) = drops
        assert shown(drops) is not None
        assert (watch.alarm is not None) == is_alarm


async def faults_of(*uses: Any) -> Watcher:
    watcher = Watcher()
    watcher.log.clock.now = 0.0
    await watcher.live(*uses)
    return watcher


async def fallen(*uses: Any, sessions: int = 20) -> tuple[DriftDetectors, Watcher]:
    """Scores that fell at minute 300 for so many sessions, explained by what was used meanwhile."""
    watcher, drops = await faults_of(*uses), watched()
    live(drops, [*GOOD, *[0.0] * sessions])
    explain(drops, watcher)
    return drops, watcher


async def test_the_fault_that_began_with_a_drop_explains_it() -> None:
    drops, _ = await fallen(*[FINE] * 300, *[FAILED] * 20)

    assert shown(drops).cause == ("tool_failed", "find_order")
    assert drops.causes() == {AGENT: ("tool_failed", "find_order")}


async def test_a_tool_that_fails_explains_before_the_answers_that_give_up_because_of_it() -> None:
    content = replace(FINE, gave_up=False)
    given_up, failed = (replace(each, gave_up=True) for each in (FINE, FAILED))

    drops, _ = await fallen(*[content] * 300, *[failed, failed, given_up] * 10, sessions=30)
    other, _ = await fallen(*[content] * 300, *[given_up] * 30, sessions=30)

    assert shown(drops).cause == ("tool_failed", "find_order")
    assert shown(other).cause == ("gave_up", "")


async def test_where_nothing_fails_more_than_before_the_cause_is_unknown() -> None:
    drops, _ = await fallen(*[FINE] * 320)

    assert shown(drops).cause is None
    assert drops.causes() == {AGENT: None}


async def test_a_drop_is_over_when_the_fault_that_was_named_is_over() -> None:
    drops, watcher = await fallen(*[FINE] * 300, *[FAILED] * 20)

    await watcher.live(*[FINE] * 20, begin=320)
    assert watcher.shown() == {}
    explain(drops, watcher)

    assert shown(drops) is None


async def test_an_earlier_fault_that_ended_before_ends_no_drop() -> None:
    drops, watcher = await fallen(*[FINE] * 200, *[FAILED] * 20, *[FINE] * 80, *[FAILED] * 20)

    explain(drops, watcher)

    assert shown(drops).cause == ("tool_failed", "find_order")


def test_strength_and_cause_are_stored_with_the_drop() -> None:
    drops = watched()
    live(drops, [*GOOD, *[0.0] * 40])
    (watch,) = drops
    watch.past.explain(("tool_failed", "find_order"))

    restored = DriftDetectors(LIMITS, settle=0.0)
    drops.table.change(watch.labels)
    assert give_back(restored.table, drops.table.pending()) == []

    assert shown(restored) == shown(drops)
    assert shown(restored).strong


def test_recent_uses_are_bounded_and_exact_for_the_newest() -> None:
    recent = RecentUses()
    for number in range(10_000):
        recent.add(float(number), failed=number >= 9_990)

    assert len(recent.buckets) <= SAME * 9
    assert recent.since(9_995.0) == (5, 5)
    uses, failures = recent.since(9_900.0)
    assert failures == 10
    assert 85 <= uses <= 100
    assert RecentUses(recent.buckets).since(9_900.0) == (uses, failures)


async def test_no_drop_is_without_a_cause_before_20_uses_of_everything_or_15_minutes() -> None:
    drops, watcher = await fallen(*[FINE] * 300)
    for number in range(15):
        looked = shown(drops).looked_at
        assert (looked.tool, looked.uses) == ("find_order", number)
        assert looked.words == f"cause not known yet: {number} of 20 uses of find_order looked at"
        assert drops.causes() == {AGENT: looked}
        await watcher.live(FINE, begin=300 + number)
        explain(drops, watcher)

    await watcher.live(FINE, begin=315)
    explain(drops, watcher)

    assert shown(drops).looked_at is None
    assert drops.causes() == {AGENT: None}


async def test_a_drop_has_no_cause_once_20_uses_are_looked_at() -> None:
    drops, watcher = await fallen(*[FINE] * 300)

    await watcher.live(*[FINE] * 20, begin=300, every=20)
    explain(drops, watcher)

    assert drops.causes() == {AGENT: None}
