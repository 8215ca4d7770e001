"""Open traces are looked at in time, whatever the pace of their spans, and that reads at most twice what they hold."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import TraceWindow
from collector.records.span_refs import size_of
from tests.support.examples import examples
from tests.support.open_traces_driver import OpenTracesDriver
from tests.support.spans import child

ELEVEN = 11
"""Calls of which ten are repeats."""
TICK = 0.25
"""How late a poll without records is."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What became of a trace whose spans were sent at these ages."""

    ages: list[float]
    """Of the glances."""
    read: list[int]
    """Bytes of each glance."""
    calls: list[int]
    """Calls of the loop that each glance saw."""
    sizes: list[int]
    """Bytes of the trace when it closed."""


def walked(calls: list[float], *, loop_from: int = 0, window: TraceWindow | None = None) -> Walk:
    """A trace that opens with one span and gets one more at each of these ages, until it closes.

    Those from number `loop_from` on are the calls of a loop: a worker counts them at each glance.
    """
    driver = OpenTracesDriver(window or TraceWindow())
    start, walk = 1_000.0, Walk([], [], [], [])
    driver.send(start, child(2))
    sent = 0

    def look(now: float) -> None:
        for glance in driver.open_traces.take_glances():
            pieces = glance.closing.pieces
            walk.read.append(sum(map(size_of, pieces)))
            trace = glance.trace
            first = max(glance.first, 1 + loop_from)
            if glance.first and not trace.came(max(0, glance.end - first)):
                continue
            if glance.first:
                pieces = glance.whole.closing.pieces
                walk.read.append(sum(map(size_of, pieces)))
            loop = max(0, len(pieces) - 1 - loop_from)
            walk.ages.append(now - start)
            walk.calls.append(loop)
            trace.repeats_missing = max(1, ELEVEN - max(1, loop))

    polls = ((30.0 * 2**n, False) for n in range(8))
    for at, is_call in sorted([*((at, True) for at in calls), *polls]):
        if is_call:
            closings = driver.send(start + at, child(3 + sent)).closings
            sent += 1
        else:
            closings = driver.tick(start + at + TICK)
        look(start + at + (0 if is_call else TICK))
        walk.sizes.extend(each.size for each in closings)
        if closings:
            return walk
    walk.sizes.extend(each.size for each in driver.open_traces.drain(rootless="idle"))
    return walk


def flagged(walk: Walk) -> float:
    """The age at which a glance saw the eleventh call of the loop."""
    found = zip(walk.ages, walk.calls, strict=True)
    return next(age for age, calls in found if calls >= ELEVEN)


def test_one_call_a_second_is_seen_by_age_60() -> None:
    assert flagged(walked([float(age) for age in range(1, 61)])) <= 60 + TICK


@given(
    pace=st.floats(0.01, 250),
    begins=st.floats(0, 1_500),
    before=st.lists(st.floats(0, 1), max_size=60),
)
@settings(deadline=None, max_examples=examples(150))
def test_any_loop_is_seen_by_twice_the_age_of_its_eleventh_call(
    pace: float, begins: float, before: list[float]
) -> None:
    """Whatever came before the loop, and whenever; the first glance is at 30 s."""
    eleventh = begins + pace * ELEVEN
    if 2 * eleventh >= 3_600:  # it closes first: its final outcome tells
        return
    earlier = sorted(begins * each for each in before)
    loop = [begins + pace * number for number in range(1, ELEVEN + 1)]

    window = TraceWindow(idle=4_000)
    walk = walked([*earlier, *loop], loop_from=len(earlier), window=window)

    assert flagged(walk) <= max(30, 2 * eleventh) + TICK


@given(pace=st.floats(0.5, 250), calls=st.integers(1, 300), pause=st.floats(1, 280))
@settings(deadline=None, max_examples=examples(40))
def test_all_glances_read_at_most_twice_what_the_trace_holds(
    pace: float, calls: int, pause: float
) -> None:
    """An even pace, then perhaps a pause, of a trace that repeats nothing."""
    ages = [pace * number for number in range(1, calls + 1)]

    for each in (ages, [*ages, ages[-1] + pause]):
        walk = walked(each, loop_from=1_000)
        assert sum(walk.read) <= 2 * walk.sizes[0]


@given(st.lists(st.floats(0, 3_500), min_size=1, max_size=80))
@settings(deadline=None, max_examples=examples(100))
def test_whenever_spans_come_no_more_is_read(ages: list[float]) -> None:
    walk = walked(sorted(ages), loop_from=1_000, window=TraceWindow(idle=4_000))

    assert sum(walk.read) <= 2 * walk.sizes[0]


def test_spans_that_all_came_at_once_are_read_once() -> None:
    walk = walked([0.1 * number for number in range(100)], window=TraceWindow(idle=3_000))

    assert walk.read == walk.sizes


def test_it_is_looked_at_only_if_spans_came_since() -> None:
    walk = walked([1.0, 2.0, 250.0])

    assert walk.ages == [30 + TICK, 480 + TICK]


def test_null_looks_never() -> None:
    walk = walked([float(age) for age in range(1, 400)], window=TraceWindow(glance=None))

    assert walk.ages == []


def test_a_trace_that_closes_within_30_seconds_costs_one_timer_as_before() -> None:
    driver = OpenTracesDriver()
    for age in range(20):
        driver.send(1_000.0 + age, child(2 + age))

    assert len(driver.open_traces._timers) == 1
