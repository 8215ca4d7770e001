"""When scores have dropped: the alarm, since when, what ends it, and the few points of its trail that are stored."""

import random
from typing import Any

import pytest

from collector.records.signal import rfc3339
from collector.records.standing import Standing
from collector.watch.drift.detector import AGE, MOST, Trail
from tests.support.publisher import SHORT, Publisher, closed_trace
from tests.support.signals import BASE
from tests.unit.watch.test_drift import SETTLE, Stand, session


async def regress(publisher: Publisher, *scores: float, version: str = "1", **fields: Any) -> None:
    for score in scores:
        name = f"s-{publisher.log.clock.now:.0f}"
        time = rfc3339(publisher.log.clock.now)
        said = session(name, score, final=True, agent_version=version, time=time, **fields)
        await publisher.publish(said)
        publisher.log.clock.now += 11
        await publisher.step()


def standing(publisher: Publisher) -> Standing:
    return publisher.exporter.standings()["support-bot", "planner"]


def test_a_drop_began_when_its_first_session_was_seen_not_when_it_settled() -> None:
    """Sessions settle five minutes after their newest span."""
    stand = Stand()
    scores = [*GOOD, *BAD]
    for number, score in enumerate(scores):
        at = 60.0 * number
        stand.say(session(f"s-{number}", score, time=rfc3339(BASE + at)), at)
    stand.pass_time(0, 60 * len(scores) + SETTLE)

    ((drop,),) = stand.drops.by_agent().values()

    assert drop.direction == "worse"
    assert drop.since == BASE + 60 * len(GOOD)


GOOD = [0.8, 0.85, 0.9, 0.95] * 3
BAD = [0.1] * 8


async def test_a_regression_is_noticed_kept_over_a_restart_and_cleared_by_a_fixed_version() -> None:
    publisher = Publisher(drops=SHORT)
    await regress(publisher, *GOOD[:5])
    assert publisher.value("drift_history_samples") == 5
    assert publisher.value("drift_detected") is None
    (watched,) = standing(publisher).watched
    assert (watched.samples, watched.progress) == (5, None), "the past is too short"
    await regress(publisher, *GOOD[5:])
    assert publisher.value("drift_detected") == 0
    began = publisher.log.clock.now

    await regress(publisher, *BAD, version="2")

    restarted = publisher.successor()
    await restarted.step()
    for each in (publisher, restarted):
        assert each.value("drift_detected", evaluator="agent_reliability", scope="session") == 1
        assert each.value("drift_progress_ratio") == 1
        assert (each.value("drift_mean_rank_ratio") or 1) < 0.2
        assert each.value("drift_since_timestamp_seconds") == pytest.approx(began, abs=30)
    (drop,) = standing(restarted).drops
    labels = (drop.evaluator, drop.scope, drop.direction)
    assert labels == ("agent_reliability", "session", "worse")
    assert drop.since == restarted.value("drift_since_timestamp_seconds")
    (before,), (after,) = (standing(each).watched for each in (publisher, restarted))
    assert after == before, "with the trail of its progress"
    assert after.progress == after.trail[-1][1] / 1000 == 1
    assert after.trail[0][1] < 500

    await regress(restarted, *GOOD, version="3")

    assert restarted.value("drift_detected") == 0
    assert restarted.value("drift_mean_rank_ratio") is None
    assert standing(restarted).drops == ()


async def test_the_headline_is_that_of_the_sessions_since_the_drop_and_the_window_keeps_its_own() -> (
    None
):
    publisher = Publisher(drops=SHORT)
    await regress(publisher, *GOOD)
    assert publisher.value("agent_reliability_ratio") == pytest.approx(sum(GOOD) / len(GOOD))

    await regress(publisher, *BAD)

    mean = sum([*GOOD, *BAD]) / len([*GOOD, *BAD])
    assert publisher.value("agent_reliability_ratio") == pytest.approx(0.1)
    assert publisher.value("window_mean_ratio") == pytest.approx(mean)
    fallen = standing(publisher)
    assert fallen.reliability
    assert fallen.window_reliability
    assert fallen.reliability.mean == pytest.approx(0.1)
    assert fallen.reliability.samples == len(BAD)
    assert fallen.reliability.since == fallen.drops[0].since
    assert fallen.window_reliability.mean == pytest.approx(mean)

    await regress(publisher, *GOOD, version="2")

    after = standing(publisher)
    assert after.window_reliability is None
    assert after.reliability
    assert after.reliability.since is None


@pytest.mark.parametrize(("evaluator", "detected"), [("work_baseline", 1), ("task_agreement", 0)])
async def test_better_is_shown_and_raises_the_gauge_for_work_alone(
    evaluator: str, detected: int
) -> None:
    publisher = Publisher(drops=SHORT)
    await regress(publisher, *[0.1, 0.2, 0.3] * 4, evaluator=evaluator)

    await regress(publisher, *[0.9] * 8, evaluator=evaluator)

    assert publisher.value("drift_detected") == detected
    (drop,) = standing(publisher).drops
    assert drop.direction == "better"
    if detected:
        assert publisher.value("drift_mean_rank_ratio") == drop.mean_rank > 0.8


async def test_the_past_of_an_agent_that_lost_its_slot_is_forgotten() -> None:
    publisher = Publisher(drops=SHORT)
    await regress(publisher, *GOOD)

    for number in range(64):
        await publisher.close_traces(*(closed_trace(f"agent-{number}", m) for m in range(4)))
    publisher.log.clock.now += 10
    await publisher.step()

    assert publisher.value("drift_detected") is None
    assert publisher.value("detector_scores_dropped_total", reason="forgotten") == len(GOOD)
    stored = [each.key for each in publisher.log.stored("windows") if b"\0drift\0" in each.key]
    assert stored == []


NOW = 1_700_000_000.0


def noted(*points: tuple[float, float]) -> Trail:
    trail = Trail()
    for time, progress in points:
        trail.note(time, progress)
    return trail


def test_a_second_has_one_point_with_its_most() -> None:
    trail = noted((NOW, 0.2), (NOW + 0.4, 0.9), (NOW + 0.8, 0.1))

    assert trail.packed == ((int(NOW), 900),)


def test_the_points_are_bounded_and_the_recent_ones_lie_closest() -> None:
    trail = noted(*((NOW + 30.0 * number, 0.1) for number in range(20_000)))
    times = [at for at, _ in trail.packed]

    assert len(times) == MOST
    assert times[-1] - times[-2] == 30
    assert times[1] - times[0] > 3_600
    assert times == sorted(times)


def test_a_peak_is_never_lost_before_its_time() -> None:
    draw = random.Random(5)
    trail = noted((NOW, 0.1), (NOW + 60, 0.97))
    for number in range(2, 5_000):
        trail.note(NOW + 60.0 * number, draw.random() / 2)

    assert max(step for _, step in trail.packed) == 970


def test_what_is_older_than_a_month_is_forgotten() -> None:
    trail = noted((NOW, 0.9), (NOW + AGE + 1, 0.1))

    assert trail.packed == ((int(NOW) + AGE + 1, 100),)


def test_a_trail_goes_on_from_what_was_stored() -> None:
    points = [(NOW + 7.0 * number, number % 10 / 10) for number in range(300)]
    half = Trail(noted(*points[:150]).packed)
    for time, progress in points[150:]:
        half.note(time, progress)

    assert half.packed == noted(*points).packed
