"""Log records that name each other cost in proportion to their number, whatever they say and in whatever order."""

from collections.abc import Generator, Sequence
from random import Random

import pytest

from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Position, Record
from collector.otlp.split_logs import split_logs
from tests.support.growth import steps
from tests.support.linked_logs import (
    SHAPES,
    Said,
    Shape,
    chain,
    circle,
    many_starters,
    one_call,
    prompts,
    request,
    titles,
    tower,
    work,
)
from tests.support.open_traces_driver import OpenTracesDriver
from tests.support.table import for_each

COUNT = 180
MOST = 2.2
"""Times the steps that twice the records may take."""
MANY_TURNS = (chain, circle, many_starters, tower, prompts, titles, one_call)
"""Of which no trace grows with the number of records: a trace is taken, and closes, in one step."""
WIDE = TraceWindow(max_spans=1_000_000)


def ordered(records: list[Said], order: str) -> list[Said]:
    if order == "shuffled":
        return Random(1).sample(records, len(records))
    return records[::-1] if order == "reversed" else records


def pieces(requests: Sequence[Sequence[Said]]) -> list[list[bytes]]:
    """As the receiver splits them."""
    split = (split_logs(request(each), max_item=1 << 24, joined=1 << 20) for each in requests)
    return [[piece.value for piece in each.pieces] for each in split]


def take(received: Sequence[Sequence[bytes]]) -> None:
    """As assembly takes them, until all has closed and is written: nothing holds a record back then."""
    driver = OpenTracesDriver(WIDE)
    for number, values in enumerate(received):
        for value in values:
            driver.send(100 + number / 1000, value)
    driver.tick(1e6)
    for closing in list(driver.open_traces.closings):
        driver.complete(closing)
    assert driver.open_traces.low_water == driver.next


@pytest.mark.heavy
@pytest.mark.parametrize("order", ["in order", "reversed", "shuffled"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_records_are_twice_the_steps(shape: Shape, order: str, together: bool) -> None:
    def measured(count: int) -> int:
        records = ordered(shape(count), order)
        received = pieces([records] if together else [[each] for each in records])
        return steps(lambda: take(received))

    assert measured(2 * COUNT) <= MOST * measured(COUNT)


@pytest.mark.heavy
@pytest.mark.parametrize("shape", MANY_TURNS)
def test_no_step_is_longer_for_four_times_the_turns(
    shape: Shape,
) -> None:
    def longest(count: int) -> int:
        open_traces, found = OpenTracesDriver(WIDE).open_traces, 0
        for number, [value] in enumerate(pieces([shape(count), [work(count, "hub")]])):
            record = Record(position=Position(SPANS, 0, number), key=b"", value=value, time=100)
            taking = open_traces.taking(record)
            next(taking)  # to scan the record is a step by itself, and a record is at most 1 MiB
            found = max(found, longest_step(taking))
        return max(found, longest_step(open_traces.ticking(1e6)))

    assert longest(8 * COUNT) <= 1.5 * longest(
        2 * COUNT
    )  # 1.34 today; 4 where a step grows with the turns


def longest_step(taking: Generator[None, None, object]) -> int:
    done = object()
    found, now = 0, None
    while now is not done:
        result: list[object] = []
        found = max(found, steps(lambda: result.append(next(taking, done))))  # noqa: B023 - called here
        now = result[0]
    return found


@for_each("shape", SHAPES)
def test_so_it_is_where_they_are_split(shape: Shape) -> None:
    once, twice = shape(COUNT), shape(2 * COUNT)

    assert steps(lambda: pieces([twice])) <= MOST * steps(lambda: pieces([once]))
