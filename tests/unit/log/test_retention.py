"""What somebody still waits for is never dropped, however full the log is; the quotas of its topics."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.base.errors import LogFull
from collector.log.commits import Commits
from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.embedded.retention import AppliedRetention, Quotas, Retention
from collector.log.memory import MemoryRecords
from collector.log.port import (
    CLOSINGS,
    FEEDBACK,
    MAX_RECORD,
    SESSIONS,
    SIGNALS,
    SPANS,
    TRACES,
    Commit,
    Position,
    Record,
)

GROUPS = {SPANS: frozenset({"assembly"}), TRACES: frozenset({"scoring", "api"})}
WAITS = {TRACES: frozenset({"scoring"})}
SIZE = 10_000
POOL = 75_000
"""Bytes that spans, closings and traces share; above 60,000 no spans are taken."""


class Full:
    """A log of a hundred kilobytes, with as many spans and traces as are asked for."""

    def __init__(self, *, spans: int = 0, traces: int = 0) -> None:
        self.store = MemoryRecords()
        self.commits = Commits(GROUPS)
        self.released = ReleasedSpans()
        rules = Retention(Quotas(POOL * 4 // 3), lambda _topic: 1, WAITS, keeps=self.released)
        self.retention = AppliedRetention(rules, self.store, self.commits)
        for time in range(max(spans, traces)):
            for topic in (SPANS,) * (time < spans) + (TRACES,) * (time < traces):
                at = Position(topic, 0, time)
                self.store.append(Record(position=at, key=b"", value=b"v" * SIZE, time=float(time)))

    def commit(self, group: str, topic: str, offset: int) -> None:
        self.commits.advance(Commit(group=group, topic=topic, partition=0, offset=offset))

    def release(self, *offsets: int) -> None:
        for offset in offsets:
            self.released.add(0, offset)

    def admit(self, topic: str, size: int = SIZE) -> None:
        self.retention.admit({topic: size})

    def trim(self) -> None:
        self.retention.trim(1_000)

    def free(self) -> None:
        self.retention.free(1 << 20)

    def held(self, topic: str) -> list[int]:
        return [*self.store.records[topic, 0]]

    @property
    def dropped(self) -> list[tuple[str, int]]:
        return [(each.topic, each.offset) for each in self.retention.drops.positions]


def test_spans_that_are_still_needed_are_never_dropped() -> None:
    """Of those that the commit has not passed, only what was released goes."""
    log = Full(spans=7)
    log.commit("assembly", SPANS, 2)
    log.release(4, 5)

    log.free()

    assert log.held(SPANS) == [2, 3, 6]
    assert log.dropped == [(SPANS, each) for each in (0, 1, 4, 5)]


def test_a_write_takes_the_room_of_unneeded_spans_and_no_more() -> None:
    log = Full(spans=7)
    log.commit("assembly", SPANS, 1)
    log.release(3)

    with pytest.raises(LogFull):
        log.admit(SPANS)

    assert log.held(SPANS) == [1, 2, 4, 5, 6]


def test_a_trace_that_scoring_waits_for_does_not_hold_unneeded_spans() -> None:
    log = Full(spans=3, traces=4)
    log.commit("assembly", SPANS, 3)

    log.admit(TRACES)

    assert log.held(TRACES) == [*range(4)]
    assert log.held(SPANS) != [0, 1, 2]


@settings(max_examples=60, deadline=None)
@given(
    commits=st.tuples(*[st.integers(0, 8)] * 3),
    released=st.sets(st.integers(0, 7)),
    how=st.lists(st.sampled_from((Full.free, Full.trim, Full.admit)), min_size=1, max_size=4),
    topic=st.sampled_from((SPANS, TRACES, CLOSINGS)),
)
def test_what_is_needed_stays_whatever_is_asked(
    commits: tuple[int, int, int],
    released: set[int],
    how: list[Callable[..., None]],
    topic: str,
) -> None:
    log = Full(spans=8, traces=8)
    log.commit("assembly", SPANS, commits[0])
    log.commit("scoring", TRACES, commits[1])
    log.commit("api", TRACES, commits[2])
    log.release(*released)

    for each in how:
        try:
            each(log, topic) if each is Full.admit else each(log)
        except LogFull:
            continue

    assert {*range(commits[0], 8)} - released <= {*log.held(SPANS)}
    assert {*range(commits[1], 8)} <= {*log.held(TRACES)}


def test_the_quotas_are_the_whole_and_spans_closings_and_traces_share_one() -> None:
    quotas = Quotas(1000)

    assert [quotas.quota(t) for t in (SPANS, SIGNALS, FEEDBACK, SESSIONS)] == [750, 130, 20, 100]
    assert quotas.pool(SPANS) == quotas.pool(TRACES) == quotas.pool(CLOSINGS)
    assert set(quotas.pool(SPANS)) == {SPANS, CLOSINGS, TRACES}


def test_closings_and_a_trace_fit_when_spans_do_not() -> None:
    for size in (64 << 20, 1 << 30):
        quotas = Quotas(size)
        assert quotas.limit(SPANS) == int(0.8 * quotas.quota(SPANS))
        assert quotas.limit(CLOSINGS) == quotas.quota(SPANS)
        assert quotas.at_once(TRACES) == quotas.quota(TRACES) - quotas.limit(SPANS)
        assert quotas.largest(TRACES) < quotas.at_once(TRACES)
    assert Quotas(4 << 30).largest(TRACES) == MAX_RECORD
    assert Quotas(16 << 20).largest(TRACES) < Quotas(16 << 20).limit(TRACES)
