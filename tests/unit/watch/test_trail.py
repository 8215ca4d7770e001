"""How near an alarm a label set was is remembered in few points, the recent ones close together."""

import random

from collector.watch.drift.detector import AGE, MOST, Trail

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
