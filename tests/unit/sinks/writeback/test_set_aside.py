"""When what a tool cannot place is tried again, and when it is given up."""

from collector.sinks.writeback.score import ScoreShape, WrittenScore, score_of
from collector.sinks.writeback.set_aside import SetAside
from tests.support.signals import signal
from tests.support.tools.scores import published_signals


def scores(*traces: str) -> list[WrittenScore]:
    signals = published_signals(*(signal(trace=each) for each in traces))
    found = [score_of(each, ScoreShape(sessions=())) for each in signals]
    return [each for each in found if each is not None]


def tried(aside: SetAside, now: float) -> bool:
    """Whether anything is due; then the tool says that it is still not there."""
    due = aside.due(now, 500)
    for subject in {each.subject for each in due}:
        aside.is_missing(subject, now)
    return bool(due)


def test_a_subject_is_tried_at_doubled_waits_until_its_time_is_up() -> None:
    aside = SetAside(wait=60.0)
    (score,) = scores("t")
    aside.put(score, 0.0)

    times = [now for now in range(1, 100) if tried(aside, float(now))]

    assert times == [5, 15, 35, 60]
    assert (len(aside), aside.given_up, aside.positions) == (0, 1, set())


def test_scores_of_one_subject_wait_together_and_a_later_one_of_a_place_replaces() -> None:
    aside = SetAside(wait=60.0)
    first, other, again = scores("t", "u", "t")
    for each in (first, other, again):
        aside.put(each, 0.0)

    assert aside.positions == {other.position, again.position}
    assert aside.due(5.0, 500) == [other, again]


def test_above_the_most_the_oldest_goes_first_and_is_counted() -> None:
    aside = SetAside(wait=60.0, most=2)
    first, second, third = scores("t", "u", "v")
    for each in (first, second, third):
        aside.put(each, 0.0)

    assert (first.subject in aside, aside.given_up) == (False, 1)
    assert aside.positions == {second.position, third.position}


def test_a_partition_that_another_process_reads_is_forgotten_and_not_counted() -> None:
    aside = SetAside(wait=60.0)
    (score,) = scores("t")
    aside.put(score, 0.0)

    aside.forget(1)
    assert len(aside) == 1
    aside.forget(0)

    assert (len(aside), aside.given_up) == (0, 0)
