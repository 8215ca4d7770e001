"""What comes after a trace has closed (DESIGN section 4, closing marks and late spans)."""

import pytest

from collector.assembly.closing import Closing
from tests.support.lane import Lane
from tests.support.spans import child, remote, root


def closed(lane: Lane) -> Closing:
    """Close trace 1 with its root at log time 106."""
    lane.send(100, root())
    (closing,) = lane.buffer.tick(106)
    return closing


def test_a_late_span_reopens_the_trace_for_a_new_grace() -> None:
    lane = Lane()
    lane.settle(closed(lane))

    lane.send(200, child(2))
    lane.send(204, child(3))

    assert lane.buffer.tick(205.9) == []
    (closing,) = lane.buffer.tick(206)
    assert (closing.late, closing.reason, closing.spans) == (True, "root_ended", 2)


def test_a_trace_closed_by_its_local_root_gets_the_local_grace() -> None:
    lane = Lane()
    lane.send(100, remote(2))
    (closing,) = lane.buffer.tick(130)
    lane.settle(closing)

    lane.send(200, child(3, parent=2))

    assert lane.buffer.tick(229) == []
    assert [each.root for each in lane.buffer.tick(230)] == ["local"]


def test_a_trace_closed_without_root_waits_for_idle_again() -> None:
    lane = Lane()
    lane.send(100, child(2))
    (closing,) = lane.buffer.tick(400)
    lane.settle(closing)

    lane.send(500, child(3))

    assert lane.buffer.tick(799) == []
    assert [each.reason for each in lane.buffer.tick(800)] == ["idle"]


def test_a_root_among_the_late_spans_arms_root_grace() -> None:
    lane = Lane()
    lane.send(100, child(2))
    (closing,) = lane.buffer.tick(400)
    lane.settle(closing)

    lane.send(500, root())

    assert [each.reason for each in lane.buffer.tick(506)] == ["root_ended"]


def test_at_or_below_the_reach_is_a_reread() -> None:
    lane = Lane()
    lane.settle(closed(lane))
    again = Lane(marks=lane.buffer.marks)

    step = again.send(100, root())

    assert not step.needed
    assert not step.ignored
    assert len(again.buffer) == 0


@pytest.mark.parametrize(
    ("time", "revision", "admitted"),
    [(706, 0, True), (706.1, 0, False), (200, 2, True), (200, 3, False)],
)
def test_past_late_or_past_max_revisions_it_is_ignored(
    time: float, revision: int, admitted: bool
) -> None:
    lane = Lane()
    lane.settle(closed(lane), revision=revision)

    step = lane.send(time, child(2), child(3))

    assert len(lane.buffer) == admitted
    assert step.ignored == ({} if admitted else {"shop": 2})


def test_a_late_span_of_a_trace_on_its_way_waits_behind_it() -> None:
    lane = Lane()
    first = closed(lane)

    lane.send(107, child(2))
    (second,) = lane.buffer.tick(113)

    assert not lane.buffer.is_first(second)
    lane.settle(first)
    assert lane.buffer.is_first(second)
    assert lane.buffer.revisable(second)


def test_what_comes_far_too_late_is_ignored_even_while_the_trace_is_on_its_way() -> None:
    lane = Lane()
    closed(lane)

    step = lane.send(3000, child(2))

    assert sum(step.ignored.values()) == 1
    assert len(lane.buffer) == 0


def test_a_mark_outlives_late() -> None:
    lane = Lane()
    lane.settle(closed(lane))
    lane.buffer.tick(3000)
    lane.buffer.commit("assembly")

    step = lane.send(3001, child(2))

    assert step.ignored == {"shop": 1}


def test_a_mark_is_forgotten_in_the_end() -> None:
    lane = Lane()
    lane.settle(closed(lane))
    lane.buffer.tick(3707)

    lane.buffer.commit("assembly")

    assert len(lane.buffer.marks) == 0


def test_a_mark_that_a_reread_would_meet_is_never_dropped() -> None:
    lane = Lane()
    lane.send(100, child(2, trace=2))
    lane.settle(closed(lane), offset=5)
    (old,) = lane.buffer.tick(5000)

    lane.buffer.commit("assembly")

    assert not lane.buffer.evict()
    assert lane.buffer.marks.since == 5
    lane.buffer.let_go(old)
    assert lane.buffer.evict()
    assert lane.buffer.marks.since == 6


def test_a_mark_on_which_late_spans_build_is_never_dropped() -> None:
    lane = Lane()
    lane.settle(closed(lane), offset=5)
    lane.send(700, child(2))
    (late,) = lane.buffer.tick(9000)

    lane.buffer.commit("assembly")

    assert not lane.buffer.evict()
    assert lane.buffer.revisable(late)


def test_the_commit_carries_the_oldest_mark_that_matters() -> None:
    lane = Lane()
    lane.settle(closed(lane), offset=5)
    lane.send(200, root(trace=2))
    (second,) = lane.buffer.tick(206)
    lane.settle(second, offset=9)

    commit = lane.buffer.commit("assembly")

    assert commit is not None
    assert (commit.offset, commit.metadata) == (2, 5)
