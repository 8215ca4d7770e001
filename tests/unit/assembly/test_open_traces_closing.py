"""When a trace closes, and why."""

from collector.assembly.open_trace import Closing
from collector.config.tree import TraceWindow
from collector.otlp.span_head import parse
from tests.support.open_traces_driver import WINDOW, OpenTracesDriver
from tests.support.spans import Made, child, remote, request, root
from tests.support.table import for_each


def facts(closings: list[Closing]) -> list[tuple[str, float, int]]:
    return [(each.reason, each.closed_at, each.spans) for each in closings]


Facts = tuple[str, float, int]
"""Why a trace closed, the log time at which it was due, and its spans."""
ZEROED = request(child(1, parent=0x1122334455667788)).replace(
    b"\x11\x22\x33\x44\x55\x66\x77\x88", bytes(8)
)
_broken = parse(request(child(3)))
_broken.resource_spans[0].scope_spans[0].spans.append(b"\xff\xff\xff")
BROKEN = _broken.SerializeToString(deterministic=True)
CLOSES: dict[
    str, tuple[dict[str, int], list[tuple[float, *tuple[Made | bytes, ...]]], list[Facts]]
] = {
    "root_grace after its root": ({}, [(100, child(2)), (101, root())], [("root_ended", 107, 2)]),
    "spans after the root extend nothing": (
        {},
        [(100, root()), (105, child(2)), (105.5, root(span=3))],
        [("root_ended", 106, 3)],
    ),
    "eight zero bytes are no parent": ({}, [(100, ZEROED)], [("root_ended", 106, 1)]),
    "without a root: idle after its last span": (
        {},
        [(100, child(2)), (300, child(3))],
        [("idle", 600, 2)],
    ),
    "a second copy extends nothing": (
        {},
        [(100, child(2)), (300, child(2), child(2))],
        [("idle", 400, 1)],
    ),
    "one that never rests": (
        {},
        [(100 + 200 * number, child(2 + number)) for number in range(18)],
        [("max_age", 3700, 18)],
    ),
    "max_spans": (
        {"max_spans": 3},
        [(100, child(2), child(3)), (101, child(4))],
        [("max_spans", 101, 3)],
    ),
    "a request above max_bytes": ({"max_bytes": 10}, [(100, child(2))], [("max_bytes", 100, 1)]),
    "a local root has its own grace": (
        {},
        [(100, child(3, parent=2)), (110, remote(2)), (120, child(4, parent=2))],
        [("root_ended", 140, 3)],
    ),
    "a local parent that is missing disarms it": (
        {},
        [(100, remote(2)), (110, child(4, parent=3)), (160, child(3, parent=2))],
        [("root_ended", 190, 3)],
    ),
    "a parentless root takes over from a local one": (
        {},
        [(100, remote(2, parent=1)), (101, root())],
        [("root_ended", 107, 2)],
    ),
    "a parent not known to be remote is awaited": (
        {},
        [
            (100, child(2, parent=99, flags=0)),
            (100, child(2, parent=99, flags=0x200, trace=2)),
        ],
        [("idle", 400, 1), ("idle", 400, 1)],
    ),
    "what was due closes before the record is taken": (
        {},
        [(100, root()), (106, child(2))],
        [("root_ended", 106, 1), ("root_ended", 112, 1)],
    ),
}


@for_each("case", CLOSES)
def test_when_a_trace_closes_and_why(case: str) -> None:
    window, sent, expected = CLOSES[case]
    driver = OpenTracesDriver(WINDOW.model_copy(update=window))
    closings: list[Closing] = []
    for time, *spans in sent:
        closings += driver.send(time, *spans).closings
    due = expected[-1][1]
    closings += driver.tick(due - 0.1)
    assert len(closings) < len(expected) or expected[-1][0] in {"max_spans", "max_bytes"}
    closings += driver.tick(due)

    assert facts(closings) == expected


PIECES: dict[str, tuple[list[tuple[Made | bytes, ...]], list[tuple[bytes, ...]], int, int]] = {
    "only what is new of a record is kept": (
        [(child(2),), (child(2), child(3), child(3))],
        [(request(child(2)), request(child(3)))],
        2,
        0,
    ),
    "the first copy wins": ([(child(2),), (child(2, parent=77),)], [(request(child(2)),)], 1, 0),
    "a record may hold several traces": (
        [(root(1), child(2, trace=2), child(3, trace=1)), (root(2),)],
        [(request(root(1), child(3, trace=1)),), (request(child(2, trace=2)), request(root(2)))],
        0,
        0,
    ),
    "the traces of one record close in its order": (
        [(root(7), root(3), root(5))],
        [(request(root(7)),), (request(root(3)),), (request(root(5)),)],
        0,
        0,
    ),
    "spans without valid ids are left out": (
        [(child(0), child(2, trace=0), child(3))],
        [(request(child(3)),)],
        0,
        2,
    ),
    "a broken span does not cost the others": ([(BROKEN,)], [(request(child(3)),)], 0, 1),
}
"""What is sent, the pieces of each trace, and how many spans are duplicates and invalid."""


@for_each("case", PIECES)
def test_what_of_a_record_is_kept_and_counted(case: str) -> None:
    sent, pieces, duplicates, invalid = PIECES[case]
    driver = OpenTracesDriver()

    results = [driver.send(100, *spans) for spans in sent]

    assert [each.pieces for each in driver.tick(500)] == pieces
    assert sum(each.duplicates for each in results) == duplicates
    assert sum(each.invalid for each in results) == invalid


def test_a_trace_never_grows_beyond_max_bytes() -> None:
    limit = 2 * len(request(child(2))) + 1
    driver = OpenTracesDriver(WINDOW.model_copy(update={"max_bytes": limit}))

    results = [driver.send(100 + n, child(2 + n)) for n in range(3)]

    assert facts(results[-1].closings) == [("max_bytes", 102, 2)]
    assert results[-1].closings[0].size <= limit
    assert len(driver.open_traces) == 1, "what came on top is late"


@for_each("sent,duplicates", [([child(2), child(2)], 2), ([b"\xff\xff\xff"], 0)])
def test_copies_and_what_cannot_be_decoded_cost_nothing(
    sent: list[Made | bytes], duplicates: int
) -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2))
    size = driver.open_traces.size

    result = driver.send(101, *sent)

    assert (result.duplicates, bool(result.poison)) == (duplicates, not duplicates)
    assert not result.needed
    assert (driver.open_traces.size, len(driver.open_traces)) == (size, 1)
    assert driver.open_traces.low_water == 0


def test_closings_come_in_the_order_in_which_they_were_due() -> None:
    driver = OpenTracesDriver()
    driver.send(100, child(2, trace=1))
    driver.send(101, root(trace=2))
    driver.send(102, child(2, trace=3))
    driver.send(103, root(trace=1))

    due = driver.tick(1000)

    assert [(each.trace_id[-1], each.closed_at) for each in due] == [(2, 107), (1, 109), (3, 402)]


def test_nothing_is_left_when_everything_has_closed() -> None:
    driver = OpenTracesDriver(TraceWindow(max_spans=4))
    for trace in range(1, 200):
        driver.send(
            trace, child(2, trace=trace), child(3, trace=trace), remote(4, trace=trace + 1000)
        )
        driver.send(trace, *([root(trace=trace)] if trace % 2 else []), child(9, trace=trace))
    for closing in driver.tick(1e6):
        driver.complete(closing)
    for closing in list(driver.open_traces.closings):
        driver.complete(closing)

    left = driver.open_traces
    assert left.is_idle
    assert (len(left), left.size, len(left._low_water), len(left._timers)) == (0, 0, 0, 0)
    assert left._needed._needs == {}
    assert left.low_water == driver.next


def test_timers_and_holds_stay_few_beside_one_long_trace() -> None:
    driver = OpenTracesDriver()
    driver.send(0, child(2, trace=1))
    for trace in range(2, 3000):
        time = trace / 100
        for closing in driver.send(time, child(3, trace=trace), root(trace=trace)).closings:
            driver.complete(closing)

    live = len(driver.open_traces)
    assert len(driver.open_traces._timers) <= 64 + 2 * live + 2
    assert len(driver.open_traces.closings.low_water._holds) <= 64 + 2 * live + 2


def test_a_closed_trace_holds_no_spans_while_its_entry_stays_in_the_timers() -> None:
    driver = OpenTracesDriver()
    driver.send(0, child(2))

    closings = driver.open_traces.drain(rootless="idle")

    assert [len(each.pieces) for each in closings] == [1]
    ((_, _, trace),) = driver.open_traces._timers._heap
    assert trace.is_closed
    assert (trace.pieces, trace.ids) == ([], set())
