"""When a trace closes, and why."""

from collector.assembly.open_trace import Closing
from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Position
from collector.otlp.span_head import parse
from tests.support.open_traces_driver import WINDOW, OpenTracesDriver
from tests.support.spans import child, remote, request, root, trace_id


def facts(closings: list[Closing]) -> list[tuple[str, float, int]]:
    return [(each.reason, each.closed_at, each.spans) for each in closings]


def test_a_trace_closes_root_grace_after_its_root() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))
    driver.send(101, root())

    assert driver.open_traces.tick(106.9).closings == []
    assert facts(driver.open_traces.tick(107).closings) == [("root_ended", 107, 2)]


def test_spans_after_the_root_extend_nothing() -> None:
    driver = OpenTracesDriver()
    driver.send(100, root())
    driver.send(105, child(2))
    driver.send(105.5, root(span=3))

    assert facts(driver.open_traces.tick(106).closings) == [("root_ended", 106, 3)]


def test_eight_zero_bytes_are_no_parent() -> None:
    driver = OpenTracesDriver()
    value = request(child(1, parent=0x1122334455667788)).replace(
        bytes.fromhex("1122334455667788"), bytes(8)
    )
    driver.send(100, value=value)

    assert facts(driver.open_traces.tick(106).closings) == [("root_ended", 106, 1)]


def test_without_a_root_it_closes_idle_after_its_last_span() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))
    driver.send(300, child(3))

    assert driver.open_traces.tick(599).closings == []
    assert facts(driver.open_traces.tick(600).closings) == [("idle", 600, 2)]


def test_a_trace_that_never_rests_closes_at_max_age() -> None:
    driver = OpenTracesDriver()
    for number in range(18):
        driver.send(100 + 200 * number, child(2 + number))

    assert facts(driver.open_traces.tick(3700).closings) == [("max_age", 3700, 18)]


def test_a_trace_closes_when_it_has_max_spans() -> None:
    driver = OpenTracesDriver(WINDOW.model_copy(update={"max_spans": 3}))
    driver.send(100, child(2), child(3))

    result = driver.send(101, child(4))

    assert facts(result.closings) == [("max_spans", 101, 3)]


def test_a_trace_never_grows_beyond_max_bytes() -> None:
    size = len(request(child(2)))
    driver = OpenTracesDriver(WINDOW.model_copy(update={"max_bytes": 2 * size + 1}))
    driver.send(100, child(2))
    driver.send(101, child(3))

    result = driver.send(102, child(4))

    assert facts(result.closings) == [("max_bytes", 102, 2)]
    assert result.closings[0].size <= 2 * size + 1
    assert len(driver.open_traces) == 1, "what came on top is late"


def test_a_single_request_above_max_bytes_closes_at_once() -> None:
    driver = OpenTracesDriver(WINDOW.model_copy(update={"max_bytes": 10}))

    assert facts(driver.send(100, child(2)).closings) == [("max_bytes", 100, 1)]


def test_memory_pressure_closes_the_oldest_first() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2, trace=5))
    driver.send(101, child(2, trace=3))
    driver.send(102, child(3, trace=5))

    closings: list[Closing] = []
    while (oldest := driver.open_traces.oldest()) is not None:
        closings.append(driver.open_traces.close(oldest, "memory"))

    assert [each.trace_id for each in closings] == [trace_id(5), trace_id(3)]
    assert closings[0].reason == "memory"
    assert driver.open_traces.size == 0


def test_a_local_root_arms_its_own_grace() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(3, parent=2))
    driver.send(110, remote(2))
    driver.send(120, child(4, parent=2))

    assert driver.open_traces.tick(139.9).closings == []
    (closing,) = driver.open_traces.tick(140).closings
    assert facts([closing]) == [("root_ended", 140, 3)]
    assert closing.root == "local"


def test_a_local_parent_still_missing_disarms_the_local_root() -> None:
    driver = OpenTracesDriver()
    driver.send(100, remote(2))
    driver.send(110, child(4, parent=3))

    assert driver.open_traces.tick(150).closings == []

    driver.send(160, child(3, parent=2))

    assert facts(driver.open_traces.tick(190).closings) == [("root_ended", 190, 3)]


def test_a_parentless_root_takes_over_from_a_local_one() -> None:
    driver = OpenTracesDriver()
    driver.send(100, remote(2, parent=1))
    driver.send(101, root())

    assert facts(driver.open_traces.tick(107).closings) == [("root_ended", 107, 2)]


def test_a_parent_not_known_to_be_remote_is_awaited() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2, parent=99, flags=0))
    driver.send(100, child(2, parent=99, flags=0x200, trace=2))

    assert driver.open_traces.tick(399).closings == []
    assert [each.reason for each in driver.open_traces.tick(400).closings] == ["idle", "idle"]


def test_a_second_copy_extends_nothing_and_costs_nothing() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))
    size = driver.open_traces.size

    result = driver.send(300, child(2), child(2))

    assert result.duplicates == 2
    assert not result.needed
    assert driver.open_traces.size == size
    assert facts(driver.open_traces.tick(400).closings) == [("idle", 400, 1)]


def test_only_what_is_new_of_a_record_is_kept() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))

    result = driver.send(101, child(2), child(3), child(3))

    assert result.duplicates == 2
    assert result.needed
    (closing,) = driver.open_traces.tick(500).closings
    assert closing.pieces == (request(child(2)), request(child(3)))


def test_the_first_copy_wins() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))
    driver.send(101, child(2, parent=77))

    (closing,) = driver.open_traces.tick(500).closings

    assert closing.pieces == (request(child(2)),)


def test_a_record_may_hold_several_traces() -> None:
    driver = OpenTracesDriver()
    driver.send(100, root(trace=1), child(2, trace=2), child(3, trace=1))
    driver.send(101, root(trace=2))

    first, second = driver.open_traces.tick(200).closings

    assert first.pieces == (request(root(trace=1), child(3, trace=1)),)
    assert second.pieces == (request(child(2, trace=2)), request(root(trace=2)))


def test_a_shared_record_is_needed_until_all_its_traces_are_written() -> None:
    driver = OpenTracesDriver()
    driver.send(100, root(trace=1), child(2, trace=2))
    driver.send(101, child(5, trace=3))
    (first,) = driver.open_traces.tick(106).closings

    assert driver.complete(first) == []
    assert driver.open_traces.low_water == 0

    second, third = driver.open_traces.tick(1000).closings

    assert [each.offset for each in driver.complete(second)] == [0]
    assert driver.open_traces.low_water == 1
    assert [each.offset for each in driver.complete(third)] == [1]
    assert driver.open_traces.low_water == 2


def test_spans_without_valid_ids_are_counted_and_left_out() -> None:
    driver = OpenTracesDriver()

    result = driver.send(100, child(0), child(2, trace=0), child(3))

    assert result.invalid == 2
    (closing,) = driver.open_traces.tick(500).closings
    assert closing.pieces == (request(child(3)),)


def test_one_broken_span_does_not_cost_the_others() -> None:
    driver = OpenTracesDriver()
    broken = parse(request(child(3)))
    broken.resource_spans[0].scope_spans[0].spans.append(b"\xff\xff\xff")

    result = driver.send(100, value=broken.SerializeToString(deterministic=True))

    assert result.invalid == 1
    (closing,) = driver.open_traces.tick(500).closings
    assert closing.pieces == (request(child(3)),)


def test_a_record_that_cannot_be_decoded_is_passed_over() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))

    result = driver.send(101, value=b"\xff\xff\xff")

    assert result.poison
    assert not result.needed
    assert len(driver.open_traces) == 1
    assert driver.open_traces.low_water == 0


def test_what_was_due_closes_before_the_record_is_taken() -> None:
    driver = OpenTracesDriver()
    driver.send(100, root())

    result = driver.send(106, child(2))

    assert facts(result.closings) == [("root_ended", 106, 1)]


def test_closings_come_in_the_order_in_which_they_were_due() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2, trace=1))
    driver.send(101, root(trace=2))
    driver.send(102, child(2, trace=3))
    driver.send(103, root(trace=1))

    due = driver.open_traces.tick(1000).closings

    assert [(each.trace_id[-1], each.closed_at) for each in due] == [(2, 107), (1, 109), (3, 402)]


def test_draining_says_root_ended_only_where_a_root_is() -> None:
    driver = OpenTracesDriver()
    driver.send(100, root(trace=1))
    driver.send(100, child(2, trace=2))
    driver.send(100, remote(2, trace=3))

    reasons = {
        each.trace_id[-1]: each.reason for each in driver.open_traces.drain(rootless="shutdown")
    }

    assert reasons == {1: "root_ended", 2: "shutdown", 3: "root_ended"}


def test_nothing_is_left_when_everything_has_closed() -> None:
    driver = OpenTracesDriver(TraceWindow(max_spans=4))
    for trace in range(1, 200):
        driver.send(
            trace, child(2, trace=trace), child(3, trace=trace), remote(4, trace=trace + 1000)
        )
        driver.send(trace, *([root(trace=trace)] if trace % 2 else []), child(9, trace=trace))
    for closing in driver.open_traces.tick(1e6).closings:
        driver.complete(closing)
    for closing in [each for chain in list(driver.open_traces._closing.values()) for each in chain]:
        driver.complete(closing)

    assert len(driver.open_traces) == 0
    assert driver.open_traces.size == 0
    assert driver.open_traces.is_idle
    assert driver.open_traces._needed._needs == {}
    assert len(driver.open_traces._low_water) == 0
    assert driver.open_traces.low_water == driver.next
    assert len(driver.open_traces._timers) == 0


def test_timers_and_holds_stay_few_beside_one_long_trace() -> None:
    driver = OpenTracesDriver()
    driver.send(0, child(2, trace=1))
    for trace in range(2, 3000):
        time = trace / 100
        for closing in driver.send(time, child(3, trace=trace), root(trace=trace)).closings:
            driver.complete(closing)

    live = len(driver.open_traces)
    assert len(driver.open_traces._timers) <= 64 + 2 * live + 2
    assert len(driver.open_traces._low_water._holds) <= 64 + 2 * live + 2


def test_a_closed_trace_holds_no_spans_while_its_entry_stays_in_the_timers() -> None:
    driver = OpenTracesDriver()
    driver.send(0, child(2))

    closings = driver.open_traces.drain(rootless="idle")

    assert [len(each.pieces) for each in closings] == [1]
    ((_, _, trace),) = driver.open_traces._timers._heap
    assert trace.is_closed
    assert (trace.pieces, trace.ids) == ([], set())


def test_the_traces_of_one_record_close_in_its_order() -> None:
    driver = OpenTracesDriver()
    driver.send(0, root(7), root(3), root(5))

    closings = driver.open_traces.tick(6).closings

    assert [each.trace_id for each in closings] == [trace_id(7), trace_id(3), trace_id(5)]


def test_a_record_is_free_once_its_last_trace_is_written() -> None:
    driver = OpenTracesDriver()
    driver.send(0, root(1), child(2, trace=2), root(3, 3))
    rooted = driver.open_traces.tick(6).closings
    (idle,) = driver.open_traces.tick(300).closings

    freed = [driver.complete(each) for each in (*rooted, idle)]

    assert freed == [[], [], [Position(SPANS, 0, 0)]]
