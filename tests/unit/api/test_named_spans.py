"""A trace whose record names its spans is shown as one whose record holds them, until they have expired."""

from typing import Any

import pytest

from collector.log.port import SPANS, Position
from collector.records.codec import encode
from collector.records.span_refs import Piece, SpanRef
from collector.records.traces import TraceRecord
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.faulty_log import START
from tests.support.keeping_log import KeepingLog
from tests.support.ticking import SetClock


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    return new_stand(log=KeepingLog(clock=SetClock(START)))


async def shown(stand: Stand, *spans: Piece) -> dict[str, Any]:
    of = make.trace()
    stand.take_traces(encode(TraceRecord(trace=of, spans=spans, revision=0, seen=make.START)))
    answer = await stand.get(f"/api/v1/traces/{of.trace_id}")
    assert answer.status_code == 200
    return answer.json()


async def test_named_spans_are_shown_like_held_ones(stand: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    other = make.pieces(make.trace(2))[0]
    stand.log.append(SPANS, other + piece)

    held = await shown(stand, piece)
    named = await shown(stand, SpanRef(0, 0, len(other), len(other) + len(piece)))

    assert len(held["spans"]) == 2
    assert named["spans"] == held["spans"]


async def test_a_part_of_a_trace_is_not_shown_as_the_trace(stand: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    stand.log.append(SPANS, piece)
    stand.log.append(SPANS, piece)
    stand.log.expire(Position(SPANS, 0, 0))

    found = await shown(stand, SpanRef(0, 0, 0, len(piece)), SpanRef(0, 1, 0, len(piece)))

    assert found["spans"] == []
    assert found["trace"]["trace_id"] == make.trace().trace_id


async def test_spans_that_the_log_does_not_have_are_none(stand: Stand) -> None:
    (piece,) = make.pieces(make.trace())
    found = await shown(stand, SpanRef(0, 7, 0, len(piece)))

    assert found["spans"] == []
