"""Signals of many records: as a sink has them one by one, and as it has their lines."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.base.errors import Undecodable
from collector.log.port import SIGNALS, New, Position, Record
from collector.records.published_signals import PublishedSignals, line_blocks
from collector.records.signal_batch import NewSignal, Published, made, signal_records, signals_in
from collector.sinks.jsonl import JsonlSink
from collector.sinks.port import Refused
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


@given(
    steps=st.lists(st.sampled_from(STEPS), max_size=5),
    joined=st.booleans(),
    max_size=st.integers(1, 4000),
)
@settings(max_examples=30, deadline=None)
def test_the_files_do_not_depend_on_how_the_signals_stand_together(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[list[NewSignal]],
    *,
    joined: bool,
    max_size: int,
) -> None:
    records = records_of(steps, joined=joined)
    found = held(records)

    def written(signals: Sequence[Published]) -> tuple[dict[str, bytes], object]:
        folder: Path = tmp_path_factory.mktemp("sink")
        sink = JsonlSink(folder / "signals.jsonl", max_size=max_size, keep=99)
        refused = sink._deliver(signals)
        sink._close()
        return {each.name: each.read_bytes() for each in folder.iterdir()}, refused

    assert written(found) == written([*found])


async def test_only_the_signal_that_is_not_one_line_is_refused(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "signals.jsonl", max_size=1 << 20, keep=1)
    with pytest.raises(Refused) as refused:
        await sink.deliver(held(records_of(STEPS, joined=True)))
    await sink.close(1.0)

    assert sorted(each.offset for each in refused.value.reasons) == [5, 7]
    assert (tmp_path / "signals.jsonl").read_bytes().count(b"\n") == 10
