"""Bytes of an open session that is not awake, with the traces of the bench's load and all of their outcomes."""

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
from msgspec.structs import replace as with_fields

from collector.config.plan import embedder_from, plan_from, plan_settings
from collector.config.tree import Config, SessionWindow
from collector.log.port import TRACES, Position, Record
from collector.reading.trace_scoring import TraceScoring
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_views import SummarisedTrace, decode_summarised
from collector.records.traces import TraceRecord
from collector.scoring.effects import PlacedTrace
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from evaluators.digest import trace_digest
from evaluators.expectations import Expectations
from evaluators.model import Trace
from evaluators.run import SessionScorer
from tests.support.bench_traces import read_traces

PLAN = plan_from(Config())
RULES = Rules.of(PLAN, lambda: SessionScorer(PLAN))
SESSIONS = 200
SAMPLE = 30
"""Traces that are read and scored; the sessions are made of their copies."""


@pytest.mark.bench
@pytest.mark.parametrize(("turns", "mark"), [(1, 1_500), (5, 3_000)])
def test_a_session_that_rests_takes_little(turns: int, mark: int) -> None:
    assert session_bytes(turns) <= mark


def session_bytes(turns: int) -> float:
    """By tracemalloc, the mean of some hundred sessions of so many traces each, when all of them rest."""
    sessions = OpenSessions(partition=0, rules=RULES, limits=SessionWindow(), awake=0)
    copies = _copies(
        _sample()
    )  # read and scored before: tracing allocations makes that many times slower

    def taken(first: int, last: int) -> int:
        for number in range(first * turns, last * turns):
            name = f"session-{number // turns:08d}"
            _take(sessions, *next(copies), session=name, offset=number)
        sessions.committed(0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = taken(0, SESSIONS // 2)  # what is remembered of any trace is full by then
        return (taken(SESSIONS // 2, SESSIONS) - before) / (SESSIONS - SESSIONS // 2)
    finally:
        tracemalloc.stop()


def _take(
    sessions: OpenSessions,
    trace: Trace,
    outcomes: TraceOutcomes,
    *,
    session: str,
    offset: int,
) -> None:
    value = encode(TraceRecord(trace=trace, spans=(), revision=0, seen=float(offset)))
    stored = Record(position=Position(TRACES, 0, offset), key=b"", value=value, time=0.0)
    record = decode_summarised(stored, RULES.summariser)
    assert isinstance(record, SummarisedTrace)
    key, now = session_key(trace.service, session), 1.7e9 + offset / 1e4
    assert not [*sessions.make_room(record, key=key, offset=offset, now=now)]
    record = with_fields(record, outcomes=outcomes)
    task = sessions.take(record, key=key, offset=offset, now=now)
    assert isinstance(task, PlacedTrace)
    sessions.finish(task, {})


def _copies(
    sample: Sequence[tuple[Trace, TraceOutcomes]],
) -> Iterator[tuple[Trace, TraceOutcomes]]:
    """The sample again and again, each time as traces of their own."""
    number = 0
    while True:
        for trace, outcomes in sample:
            number += 1
            digest = trace_digest([f"{number:016x}"])
            start = trace.start_time_unix_nano + number
            own = replace(
                trace,
                trace_id=digest[:32],
                digest=digest,
                start_time_unix_nano=start,
                service="agent",
            )
            yield own, outcomes


@cache
def _sample() -> list[tuple[Trace, TraceOutcomes]]:
    scoring = TraceScoring(PLAN, embedder_from(plan_settings(Config())), Expectations(()))
    return [(trace, scoring.outcomes(trace)) for trace in read_traces(SAMPLE)]
