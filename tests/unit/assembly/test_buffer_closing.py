"""When a trace closes, and why (DESIGN section 4)."""

from collector.assembly.closing import Closing
from collector.config.tree import TraceWindow
from collector.otlp.span_head import parse
from tests.support.lane import WINDOW, Lane
from tests.support.spans import child, remote, request, root, trace_id


def facts(closings: list[Closing]) -> list[tuple[str, float, int]]:
    return [(each.reason, each.closed_at, each.spans) for each in closings]


def test_a_trace_closes_root_grace_after_its_root() -> None:
    lane = Lane()
    lane.send(100, child(2))
    lane.send(101, root())

    assert lane.buffer.tick(106.9) == []
    assert facts(lane.buffer.tick(107)) == [("root_ended", 107, 2)]


def test_spans_after_the_root_extend_nothing() -> None:
    lane = Lane()
    lane.send(100, root())
    lane.send(105, child(2))
    lane.send(105.5, root(span=3))

    assert facts(lane.buffer.tick(106)) == [("root_ended", 106, 3)]


def test_eight_zero_bytes_are_no_parent() -> None:
    lane = Lane()
    value = request(child(1, parent=0x1122334455667788)).replace(
        bytes.fromhex("1122334455667788"), bytes(8)
    )
    lane.send(100, value=value)

    assert facts(lane.buffer.tick(106)) == [("root_ended", 106, 1)]


def test_without_a_root_it_closes_idle_after_its_last_span() -> None:
    lane = Lane()
    lane.send(100, child(2))
    lane.send(300, child(3))

    assert lane.buffer.tick(599) == []
    assert facts(lane.buffer.tick(600)) == [("idle", 600, 2)]


def test_a_trace_that_never_rests_closes_at_max_age() -> None:
    lane = Lane()
    for number in range(18):
        lane.send(100 + 200 * number, child(2 + number))

    assert facts(lane.buffer.tick(3700)) == [("max_age", 3700, 18)]


def test_a_trace_closes_when_it_has_max_spans() -> None:
    lane = Lane(WINDOW.model_copy(update={"max_spans": 3}))
    lane.send(100, child(2), child(3))

    step = lane.send(101, child(4))

    assert facts(step.closings) == [("max_spans", 101, 3)]


def test_a_trace_never_grows_beyond_max_bytes() -> None:
    size = len(request(child(2)))
    lane = Lane(WINDOW.model_copy(update={"max_bytes": 2 * size + 1}))
    lane.send(100, child(2))
    lane.send(101, child(3))

    step = lane.send(102, child(4))

    assert facts(step.closings) == [("max_bytes", 102, 2)]
    assert step.closings[0].size <= 2 * size + 1
    assert len(lane.buffer) == 1, "what came on top is late"


def test_a_single_request_above_max_bytes_closes_at_once() -> None:
    lane = Lane(WINDOW.model_copy(update={"max_bytes": 10}))

    assert facts(lane.send(100, child(2)).closings) == [("max_bytes", 100, 1)]


def test_memory_pressure_closes_the_oldest_first() -> None:
    lane = Lane()
    lane.send(100, child(2, trace=5))
    lane.send(101, child(2, trace=3))
    lane.send(102, child(3, trace=5))

    first, second = lane.buffer.relieve(), lane.buffer.relieve()

    assert [first.trace_id, second.trace_id] == [trace_id(5), trace_id(3)]
    assert first.reason == "memory"
    assert lane.buffer.size == 0


def test_a_local_root_arms_its_own_grace() -> None:
    lane = Lane()
    lane.send(100, child(3, parent=2))
    lane.send(110, remote(2))
    lane.send(120, child(4, parent=2))

    assert lane.buffer.tick(139.9) == []
    (closing,) = lane.buffer.tick(140)
    assert facts([closing]) == [("root_ended", 140, 3)]
    assert closing.root == "local"


def test_a_local_parent_still_missing_disarms_the_local_root() -> None:
    lane = Lane()
    lane.send(100, remote(2))
    lane.send(110, child(4, parent=3))

    assert lane.buffer.tick(150) == []

    lane.send(160, child(3, parent=2))

    assert facts(lane.buffer.tick(190)) == [("root_ended", 190, 3)]


def test_a_parentless_root_takes_over_from_a_local_one() -> None:
    lane = Lane()
    lane.send(100, remote(2, parent=1))
    lane.send(101, root())

    assert facts(lane.buffer.tick(107)) == [("root_ended", 107, 2)]


def test_a_parent_not_known_to_be_remote_is_awaited() -> None:
    lane = Lane()
    lane.send(100, child(2, parent=99, flags=0))
    lane.send(100, child(2, parent=99, flags=0x200, trace=2))

    assert lane.buffer.tick(399) == []
    assert [each.reason for each in lane.buffer.tick(400)] == ["idle", "idle"]


def test_a_second_copy_extends_nothing_and_costs_nothing() -> None:
    lane = Lane()
    lane.send(100, child(2))
    size = lane.buffer.size

    step = lane.send(300, child(2), child(2))

    assert step.duplicates == 2
    assert not step.needed
    assert lane.buffer.size == size
    assert facts(lane.buffer.tick(400)) == [("idle", 400, 1)]


def test_only_what_is_new_of_a_record_is_kept() -> None:
    lane = Lane()
    lane.send(100, child(2))

    step = lane.send(101, child(2), child(3), child(3))

    assert step.duplicates == 2
    assert step.needed
    (closing,) = lane.buffer.tick(500)
    assert closing.pieces == (request(child(2)), request(child(3)))


def test_the_first_copy_wins() -> None:
    lane = Lane()
    lane.send(100, child(2))
    lane.send(101, child(2, parent=77))

    (closing,) = lane.buffer.tick(500)

    assert closing.pieces == (request(child(2)),)


def test_a_record_may_hold_several_traces() -> None:
    lane = Lane()
    lane.send(100, root(trace=1), child(2, trace=2), child(3, trace=1))
    lane.send(101, root(trace=2))

    first, second = lane.buffer.tick(200)

    assert first.pieces == (request(root(trace=1), child(3, trace=1)),)
    assert second.pieces == (request(child(2, trace=2)), request(root(trace=2)))


def test_a_shared_record_is_needed_until_all_its_traces_are_written() -> None:
    lane = Lane()
    lane.send(100, root(trace=1), child(2, trace=2))
    lane.send(101, child(5, trace=3))
    (first,) = lane.buffer.tick(106)

    assert lane.settle(first) == []
    assert lane.buffer.low_water == 0

    second, third = lane.buffer.tick(1000)

    assert [each.offset for each in lane.settle(second)] == [0]
    assert lane.buffer.low_water == 1
    assert [each.offset for each in lane.settle(third)] == [1]
    assert lane.buffer.low_water == 2


def test_spans_without_valid_ids_are_counted_and_left_out() -> None:
    lane = Lane()

    step = lane.send(100, child(0), child(2, trace=0), child(3))

    assert step.invalid == 2
    (closing,) = lane.buffer.tick(500)
    assert closing.pieces == (request(child(3)),)


def test_one_broken_span_does_not_cost_the_others() -> None:
    lane = Lane()
    broken = parse(request(child(3)))
    broken.resource_spans[0].scope_spans[0].spans.append(b"\xff\xff\xff")

    step = lane.send(100, value=broken.SerializeToString(deterministic=True))

    assert step.invalid == 1
    (closing,) = lane.buffer.tick(500)
    assert closing.pieces == (request(child(3)),)


def test_a_record_that_cannot_be_decoded_is_passed_over() -> None:
    lane = Lane()
    lane.send(100, child(2))

    step = lane.send(101, value=b"\xff\xff\xff")

    assert step.poison
    assert not step.needed
    assert len(lane.buffer) == 1
    assert lane.buffer.low_water == 0


def test_what_was_due_closes_before_the_record_is_taken() -> None:
    lane = Lane()
    lane.send(100, root())

    step = lane.send(106, child(2))

    assert facts(step.closings) == [("root_ended", 106, 1)]


def test_closings_come_in_the_order_in_which_they_were_due() -> None:
    lane = Lane()
    lane.send(100, child(2, trace=1))
    lane.send(101, root(trace=2))
    lane.send(102, child(2, trace=3))
    lane.send(103, root(trace=1))

    due = lane.buffer.tick(1000)

    assert [(each.trace_id[-1], each.closed_at) for each in due] == [(2, 107), (1, 109), (3, 402)]


def test_draining_says_root_ended_only_where_a_root_is() -> None:
    lane = Lane()
    lane.send(100, root(trace=1))
    lane.send(100, child(2, trace=2))
    lane.send(100, remote(2, trace=3))

    reasons = {each.trace_id[-1]: each.reason for each in lane.buffer.drain(rootless="shutdown")}

    assert reasons == {1: "root_ended", 2: "shutdown", 3: "root_ended"}


def test_nothing_is_left_when_everything_has_closed() -> None:
    lane = Lane(TraceWindow(max_spans=4))
    for trace in range(1, 200):
        lane.send(
            trace, child(2, trace=trace), child(3, trace=trace), remote(4, trace=trace + 1000)
        )
        lane.send(trace, *([root(trace=trace)] if trace % 2 else []), child(9, trace=trace))
    for closing in lane.buffer.tick(1e6):
        lane.settle(closing)
    for closing in [each for chain in list(lane.buffer._closing.values()) for each in chain]:
        lane.settle(closing)

    assert len(lane.buffer) == 0
    assert lane.buffer.size == 0
    assert lane.buffer.is_idle
    assert lane.buffer._shared == {}
    assert len(lane.buffer._low_water) == 0
    assert lane.buffer.low_water == lane.next
    assert len(lane.buffer._timers) == 0


def test_timers_and_holds_stay_few_beside_one_long_trace() -> None:
    lane = Lane()
    lane.send(0, child(2, trace=1))
    for trace in range(2, 3000):
        time = trace / 100
        for closing in lane.send(time, child(3, trace=trace), root(trace=trace)).closings:
            lane.settle(closing)

    live = len(lane.buffer)
    assert len(lane.buffer._timers) <= 64 + 2 * live + 2
    assert len(lane.buffer._low_water._holds) <= 64 + 2 * live + 2
