"""Whenever the process dies, and however far its reader lags: the same traces, byte for byte, and none lost."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collector.log.port import SPANS, TRACES
from collector.records.codec import encode
from collector.records.span_refs import SpanRef
from collector.records.traces import TraceRecord, decode_traces
from tests.support.assembling import Site
from tests.support.examples import examples
from tests.support.spans import Made, child, remote, root

FAR = 1e6


@dataclass(frozen=True, slots=True)
class Sent:
    """A record of `spans`, so long after the one before."""

    after: float
    partition: int
    spans: tuple[Made, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """A process that starts when so many records have come, and dies at a step of its log (None: it is stopped)."""

    records: int
    after: float
    crash_at: int | None


@st.composite
def sent(draw: st.DrawFn) -> Sent:
    partition = draw(st.integers(0, 1))
    spans: list[Made] = []
    for _ in range(draw(st.integers(1, 3))):
        trace = partition + 2 * draw(st.integers(1, 3))
        number = draw(st.integers(1, 5))
        made = {1: root(trace), 2: remote(2, 77, trace=trace)}
        spans.append(made.get(number) or child(number, trace=trace))
    return Sent(draw(st.sampled_from([0, 1, 5.9, 6, 6.1, 40, 301, 650])), partition, tuple(spans))


lives = st.builds(
    Life,
    records=st.integers(0, 14),
    after=st.sampled_from([0, 3, 6, 40, 301]),
    crash_at=st.none() | st.integers(1, 40),
)


def by_revision(site: Site) -> dict[tuple[str, int], set[bytes]]:
    found: dict[tuple[str, int], set[bytes]] = {}
    for record in site.log.history(TRACES):
        trace = decode_traces(record.value)
        assert isinstance(trace, TraceRecord)
        whole = encode(site.with_spans(trace))
        found.setdefault((trace.trace.trace_id, trace.revision), set()).add(whole)
    return found


def undisturbed(records: list[Sent]) -> dict[tuple[str, int], set[bytes]]:
    """One life that begins when everything has come: as far behind as a reader can be."""
    site = Site(partitions=2)
    time = 100.0
    for each in records:
        time += each.after
        site.send(time, *each.spans, partition=each.partition)
    asyncio.run(site.once(FAR))
    return by_revision(site)


async def live(site: Site, life: Life, *, end: float) -> None:
    """One life, cut short at its step; then the log loses whatever it may lose."""
    site.clock.now = min(site.clock.now + life.after, end)
    await site.live(life.crash_at)


def disturbed(
    records: list[Sent], plan: list[Life], *, atomic: bool = True, by_ref: bool = False
) -> Site:
    site = Site(partitions=2, atomic=atomic, by_ref=by_ref)
    due = sorted(plan, key=lambda life: life.records)
    time = 100.0
    for index, each in enumerate(records):
        time += each.after
        for life in [life for life in due if life.records == index]:
            asyncio.run(live(site, life, end=time))
        site.send(time, *each.spans, partition=each.partition)
    for life in [life for life in due if life.records >= len(records)]:
        asyncio.run(live(site, life, end=FAR))
    asyncio.run(site.once(FAR))
    return site


# Each record as it came, the last of partition 0 alone in its trace: a commit between two steps must not pass it.
COMMITTED_BETWEEN = [
    Sent(1, 1, (child(4, trace=7), remote(2, 77, trace=7))),
    Sent(301, 1, (child(5, trace=3), remote(2, 77, trace=3), child(3, trace=5))),
    Sent(40, 1, (child(4, trace=7), child(3, trace=7))),
    Sent(40, 0, (child(5, trace=4),)),
    Sent(40, 1, (child(4, trace=7), child(3, trace=7))),
]


@settings(max_examples=examples(200), deadline=None)
@given(
    records=st.lists(sent(), min_size=1, max_size=14),
    plan=st.lists(lives, max_size=5),
    atomic=st.booleans(),
)
@example(records=COMMITTED_BETWEEN, plan=[Life(11, 40, None)], atomic=True)
def test_any_crashes_and_any_lag_give_the_same_records(
    records: list[Sent], plan: list[Life], atomic: bool
) -> None:
    site = disturbed(records, plan, atomic=atomic)

    found = by_revision(site)
    assert found == undisturbed(records)
    assert site.log.stored(SPANS) == [], "nothing is open: nothing is kept"


@settings(max_examples=examples(100), deadline=None)
@given(records=st.lists(sent(), min_size=1, max_size=14), plan=st.lists(lives, max_size=5))
def test_records_that_name_their_spans_are_the_same_whatever_crashes(
    records: list[Sent], plan: list[Life]
) -> None:
    site = disturbed(records, plan, by_ref=True)

    assert by_revision(site) == undisturbed(records)
    named = [each for trace in site.traces() for each in trace.spans if isinstance(each, SpanRef)]
    stored = {each.position for each in site.log.stored(SPANS)}
    assert {each.position for each in named} <= stored, "what a trace names is there"


STORY = [
    Sent(0, 0, (child(3, trace=2), child(3, trace=4))),
    Sent(1, 0, (root(2),)),
    Sent(1, 0, (child(4, trace=4),)),
    Sent(6, 0, (root(6), child(3, trace=2))),
    Sent(4, 0, (child(5, trace=2),)),
    Sent(20, 0, (root(4), child(5, trace=6))),
]


@pytest.mark.parametrize("atomic", [True, False])
def test_a_crash_at_every_single_step(atomic: bool) -> None:
    wanted = undisturbed(STORY)
    for step in range(1, 60):
        plan = [Life(4, 3, step), Life(6, 40, None), Life(6, 301, step)]

        assert by_revision(disturbed(STORY, plan, atomic=atomic)) == wanted, f"step {step}"
