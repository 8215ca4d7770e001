"""Scores depend on the set of traces, never on arrival."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.signal import Signal
from collector.records.traces import TraceRecord
from tests.support.examples import examples
from tests.support.faulty_log import FaultyLog
from tests.support.scoring_fakes import (
    append,
    latest,
    make_record,
    make_scorer,
    scored_log,
    windows,
)

NANO = 1_000_000_000
Arrival = tuple[float, TraceRecord]


@st.composite
def traces(draw: st.DrawFn) -> list[TraceRecord]:
    """A few traces of a few sessions, some revised, some without a turn."""
    made: list[TraceRecord] = []
    for n in range(draw(st.integers(1, 14))):
        session = draw(st.sampled_from(["a", "b"]))
        start = draw(st.integers(0, 8)) * NANO
        turn = draw(st.integers(0, 5)) > 0
        seen = (
            0.0  # of a trace's newest span: a revision was never seen earlier than the one before
        )
        for revision in range(draw(st.sampled_from([1, 1, 1, 2]))):
            seen += draw(st.integers(0, 5))
            made.append(
                make_record(
                    f"{n:02}",
                    start=start,
                    session=session,
                    revision=revision,
                    turn=turn,
                    seen=seen,
                    agent=draw(st.sampled_from(["x", "y"])),
                )
            )
    return made


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    """The same with repeats and pauses, at log times that never go back."""
    now = 0.0
    arrived: list[Arrival] = []
    for each in draw(traces()):
        now += draw(st.sampled_from([0.0, 0.0, 1.0, 6.0]))
        arrived += [(now, each)] * draw(st.sampled_from([1, 1, 1, 2]))
    return arrived


def in_revision_order(records: Sequence[TraceRecord]) -> list[TraceRecord]:
    """A trace's revisions are in one partition and grow; everything else may come in any order."""
    waiting: dict[str, list[TraceRecord]] = {each.trace.trace_id: [] for each in records}
    for each in sorted(records, key=lambda record: record.revision):
        waiting[each.trace.trace_id].append(each)
    return [waiting[each.trace.trace_id].pop(0) for each in records]


async def _scored(records: Sequence[TraceRecord], *, max_traces: int, max_age: float) -> FaultyLog:
    log = scored_log()
    for each in records:
        append(log, each)
    limits = windows(max_traces=max_traces, max_age=max_age, idle=1.0)
    await make_scorer(log, limits=limits).drain("idle")
    return log


def final(log: FaultyLog) -> dict[object, object]:
    newest = latest(log).items()
    return {key: (each.id, each.score) for key, each in newest if each.scope == "session"}


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), records=traces(), max_traces=st.sampled_from([2, 4, 1000]))
def test_final_scores_depend_on_the_set_of_traces_not_on_their_arrival(
    data: st.DataObject, records: list[TraceRecord], max_traces: int
) -> None:
    shuffled = in_revision_order(data.draw(st.permutations(records)))
    max_age = data.draw(st.sampled_from([3.0, 1000.0]))

    one = asyncio.run(_scored(in_revision_order(records), max_traces=max_traces, max_age=max_age))
    other = asyncio.run(_scored(shuffled, max_traces=max_traces, max_age=max_age))

    assert final(one) == final(other)
    assert all(each.final for each in latest(one).values() if each.scope == "session")


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), records=traces())
def test_scores_of_traces_depend_on_the_set_of_traces_not_on_their_arrival(
    data: st.DataObject, records: list[TraceRecord]
) -> None:
    shuffled = in_revision_order(data.draw(st.permutations(records)))

    one = asyncio.run(_scored(in_revision_order(records), max_traces=1000, max_age=1000.0))
    other = asyncio.run(_scored(shuffled, max_traces=1000, max_age=1000.0))

    assert _ids(latest(one)) == _ids(latest(other))


def _ids(newest: dict[tuple[str, str, str], Signal]) -> dict[tuple[str, str, str], str]:
    return {key: each.id for key, each in newest.items()}
