"""Which record is scored next, and how far a partition is done."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.log.port import TRACES, Position, Record
from collector.scoring import backlog as module
from collector.scoring.backlog import MOST, Backlog, Waiting


def record(offset: int, key: str, *, partition: int = 0, value: bytes = b"v") -> Record:
    """`key` is "service session"."""
    service, _, session = key.partition(" ")
    return Record(
        position=Position(TRACES, partition, offset),
        key=f"{service}\0{session}".encode(),
        value=value,
        time=0.0,
    )


def filled(*records: Record, share: float = 0.5) -> Backlog:
    backlog = Backlog(share)
    for each in records:
        backlog.add(each)
    return backlog


def everything(backlog: Backlog) -> list[Waiting]:
    return list(iter(lambda: backlog.next(lambda _: True), None))


def offsets(waiting: Sequence[Waiting]) -> list[int]:
    return [each.record.position.offset for each in waiting]


def test_a_session_has_one_record_under_way_and_others_pass() -> None:
    backlog = filled(record(0, "a 1"), record(1, "a 1"), record(2, "a 2"))

    first, other = everything(backlog)

    assert offsets([first, other]) == [0, 2]
    backlog.done(first)
    assert offsets(everything(backlog)) == [1]


def test_the_low_water_stays_before_what_is_not_done() -> None:
    backlog = filled(record(3, "a 1"), record(5, "a 2"), record(9, "a 3"))
    one, two, three = everything(backlog)

    assert backlog.done(three) is None
    assert backlog.done(one) == 4
    assert backlog.done(two) == 10
    assert len(backlog) == 0


def test_what_is_done_behind_others_holds_no_value() -> None:
    backlog = filled(record(0, "a 1", value=b"v" * 30), record(1, "a 2", value=b"v" * 30))
    first, behind = everything(backlog)

    backlog.done(behind)

    assert (behind.record.value, first.record.value) == (b"", b"v" * 30)
    assert backlog.done(first) == 2


def test_a_service_has_its_share_of_what_is_under_way() -> None:
    backlog = filled(*(record(n, f"greedy {n}") for n in range(200)))
    for n in range(3):
        backlog.add(record(200 + n, f"modest {n}"))

    services = [each.service for each in everything(backlog)]

    assert services.count(b"greedy") == MOST // 2
    assert services.count(b"modest") == 3


def test_services_take_turns() -> None:
    """Two services may fill what is under way; a third one gets the next place."""
    backlog = filled(*(record(n, f"{'ab'[n % 2]} {n}") for n in range(300)))
    under_way = everything(backlog)
    assert len(under_way) == MOST
    backlog.add(record(300, "c 1"))

    backlog.done(under_way[0])
    backlog.done(under_way[1])
    backlog.done(under_way[2])

    assert b"c" in {each.service for each in everything(backlog)}


def test_large_records_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    backlog = filled(*(record(n, f"a {n}", value=b"v" * 30) for n in range(9)))
    assert len(everything(backlog)) == 2

    backlog = filled(*(record(n, f"{n} 1", value=b"v" * 30) for n in range(9)))
    assert len(everything(backlog)) == 4

    backlog = filled(record(0, "a 1", value=b"v" * 1000))
    assert len(everything(backlog)) == 1


def test_values_above_the_bound_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES", 50)
    backlog = filled(*(record(n, f"a {n}", value=b"v" * 30) for n in range(3)))

    assert [each.is_let_go for each in everything(backlog)] == [False, True, True]


def test_a_record_without_room_holds_the_others_back() -> None:
    backlog = filled(record(0, "a 1"), record(1, "a 2"))

    assert backlog.next(lambda _: False) is None
    assert len(everything(backlog)) == 2


def test_the_oldest_record_goes_where_the_one_whose_turn_it_is_has_no_room() -> None:
    """It waits for nothing, so that something always goes."""
    backlog = filled(record(0, "a 1"), record(1, "b 1"), record(2, "a 2"), record(3, "b 2"))
    first = backlog.next(lambda _: True)
    assert first is not None
    backlog.done(first)

    each = backlog.next(lambda record: record.position.offset == 1)
    assert each is not None
    backlog.done(each)
    each = backlog.next(lambda record: record.position.offset == 2)

    assert each is not None


def test_waits_looks_at_records_before_an_offset() -> None:
    backlog = filled(record(4, "a 1"))

    assert backlog.waits(0, b"a\0" + b"1", 5)
    assert not backlog.waits(0, b"a\0" + b"1", 4)
    assert not backlog.waits(1, b"a\0" + b"1", 5)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_the_order_all_is_done_and_the_low_water_never_passes_what_is_not(
    data: st.DataObject,
) -> None:
    """Records of three partitions, done in any order; a partition is forgotten on the way."""
    coming = [
        record(
            n, f"{data.draw(st.sampled_from('ab'))} {data.draw(st.integers(0, 3))}", partition=n % 3
        )
        for n in range(data.draw(st.integers(0, 40)))
    ]
    backlog = Backlog(0.5)
    left = {each.position for each in coming}
    under_way: list[Waiting] = []
    low = dict[int, int]()
    lost = data.draw(st.sampled_from([None, 0, 1, 2]))
    for each in coming:
        backlog.add(each)
    while under_way or len(backlog):
        under_way += everything(backlog)
        done = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
        position = done.record.position
        left.discard(position)
        moved = backlog.done(done)
        low[position.partition] = max(low.get(position.partition, 0), moved or 0)
        assert all(each.offset >= low.get(each.partition, 0) for each in left)
        if lost is not None and data.draw(st.booleans()):
            backlog.forget(lost)
            left = {each for each in left if each.partition != lost}
            under_way = [each for each in under_way if each.record.position.partition != lost]
            lost = None

    assert not left
    assert backlog._held == 0
    assert not backlog._under_way
    assert not backlog._bytes
    assert not backlog._ready
