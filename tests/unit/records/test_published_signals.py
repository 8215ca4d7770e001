"""Signals of many records: as a sink has them one by one, and as it has their lines."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from collector.base.errors import Undecodable
from collector.log.port import SIGNALS, New, Position, Record
from collector.records.published_signals import PublishedSignals, line_blocks
from collector.records.signal_batch import NewSignal, made, signal_records, signals_in
from tests.support.signals import signal


def made_signal(number: int, explanation: str = "") -> NewSignal:
    return made(signal("s", f"t-{number}", explanation=explanation))


def on_two_lines(number: int) -> NewSignal:
    each = made_signal(number)
    json = each.json[:-1] + b"\n}"
    return replace(each, json=json, header=replace(each.header, size=len(json)))


def records_of(steps: Sequence[Sequence[NewSignal]], *, joined: bool) -> list[Record]:
    offset, found = 0, list[Record]()
    for step in steps:
        for new in signal_records(step, joined=joined):
            offset += new.count
            found.append(record(new, offset))
    return found


def record(new: New, offset: int) -> Record:
    assert isinstance(new.value, bytes)
    return Record(
        position=Position(SIGNALS, 0, offset),
        key=new.key,
        value=new.value,
        time=100.0 - offset,
        headers=new.headers,
        count=new.count,
    )


def held(records: Sequence[Record]) -> PublishedSignals:
    found = PublishedSignals()
    for each in records:
        found.add(each)
    return found


STEPS = [
    [made_signal(0), made_signal(1, "two\u2028\x85lines\r")],
    [made_signal(2)],
    [made_signal(3), on_two_lines(4), made_signal(5)],
    [on_two_lines(6)],
    [made_signal(number) for number in range(7, 12)],
]


@pytest.mark.parametrize("joined", [True, False])
def test_they_are_those_of_their_records(*, joined: bool) -> None:
    records = records_of(STEPS, joined=joined)
    found, expected = held(records), [each for record in records for each in signals_in(record)]

    assert len(found) == len(expected) == 12
    assert b"".join(block.lines for block in line_blocks(found)) == b"".join(
        each.json + b"\n" for each in expected
    )
    assert [*found] == expected
    assert (found[3], found[-1], [*found[2:5]]) == (expected[3], expected[-1], expected[2:5])
    assert found.oldest == min(each.time for each in expected)


def test_a_record_that_holds_none_adds_nothing() -> None:
    found = PublishedSignals()
    (whole,) = records_of([STEPS[0]], joined=True)
    for value in (b"", b"{}", whole.value[:-1]):
        with pytest.raises(Undecodable):
            found.add(Record(position=whole.position, key=b"", value=value, time=1.0, count=2))
    assert (len(found), [*found], found.oldest) == (0, [], None)
