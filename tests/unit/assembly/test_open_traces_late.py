"""Spans that come after their trace has closed: read again, late, or ignored."""

from collector.assembly.open_trace import Closing
from tests.support.open_traces_driver import OpenTracesDriver
from tests.support.spans import Made, child, remote, root
from tests.support.table import for_each


def closed(driver: OpenTracesDriver) -> Closing:
    """Close trace 1 with its root at log time 106."""
    driver.send(100, root())
    (closing,) = driver.tick(106)
    return closing


@for_each(
    "first,late,due,closing",
    [
        (root(), [child(2), child(3)], 506, ("root_ended", "parentless", 2)),
        (remote(2), [child(3, parent=2)], 530, ("root_ended", "local", 1)),
        (child(2), [child(3)], 800, ("idle", "missing", 1)),
        (child(2), [root()], 506, ("root_ended", "parentless", 1)),
    ],
)
def test_late_spans_reopen_a_trace_for_a_new_grace(
    first: Made, late: list[Made], due: float, closing: tuple[str, str, int]
) -> None:
    driver = OpenTracesDriver()
    driver.send(100, first)
    (before,) = driver.tick(400)
    driver.complete(before)
    for time, each in zip((500, 504), late, strict=False):
        driver.send(time, each)

    assert driver.tick(due - 0.1) == []
    (after,) = driver.tick(due)
    assert (after.late, after.reason, after.root, after.spans) == (True, *closing)


def test_a_trace_is_not_looked_at_while_an_earlier_part_of_it_is_not_written() -> None:
    driver = OpenTracesDriver()
    before = closed(driver)
    driver.send(107, child(2))
    (trace,) = driver.open_traces.open

    assert not trace.is_open
    driver.complete(before)
    assert trace.is_open


def test_at_or_below_the_last_offset_is_a_reread() -> None:
    driver = OpenTracesDriver()
    driver.complete(closed(driver))
    again = OpenTracesDriver(closed_traces=driver.open_traces.closings.written)

    result = again.send(100, root())

    assert not result.needed
    assert not result.late
    assert len(again.open_traces) == 0


def test_what_comes_far_too_late_is_ignored_even_while_the_trace_is_on_its_way() -> None:
    driver = OpenTracesDriver()
    closed(driver)

    result = driver.send(3000, child(2))

    assert sum(result.late.values()) == 1
    assert len(driver.open_traces) == 0


def test_a_mark_outlives_late_and_is_forgotten_in_the_end() -> None:
    driver = OpenTracesDriver()
    driver.complete(closed(driver))
    driver.tick(3000)
    driver.open_traces.commit("assembly")
    result = driver.send(3001, child(2))
    driver.tick(3707)
    driver.open_traces.commit("assembly")

    assert result.late == {("shop", "ignored"): 1}
    assert len(driver.open_traces.closings.written) == 0


def test_a_mark_that_a_reread_would_meet_is_never_dropped() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2, trace=2))
    driver.complete(closed(driver), offset=5)
    (old,) = driver.tick(5000)

    driver.open_traces.commit("assembly")

    assert not driver.open_traces.evict()
    assert driver.open_traces.closings.written.since == 5
    driver.open_traces.closings.release_hold(old)
    assert driver.open_traces.evict()
    assert driver.open_traces.closings.written.since == 6


def test_a_mark_on_which_late_spans_build_is_never_dropped() -> None:
    driver = OpenTracesDriver()
    driver.complete(closed(driver), offset=5)
    driver.send(700, child(2))
    (late,) = driver.tick(9000)

    driver.open_traces.commit("assembly")

    assert not driver.open_traces.evict()
    assert driver.open_traces.closings.revisable_mark(late)


def test_the_commit_carries_the_oldest_mark_that_matters() -> None:
    driver = OpenTracesDriver()
    driver.complete(closed(driver), offset=5)
    driver.send(200, root(trace=2))
    (second,) = driver.tick(206)
    driver.complete(second, offset=9)

    commit = driver.open_traces.commit("assembly")

    assert commit is not None
    assert (commit.offset, commit.metadata) == (2, 5)
