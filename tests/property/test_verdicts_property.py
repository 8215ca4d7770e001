"""Verdicts: each due (subject, evaluator) ends in one final outcome, the first verdict's, whatever crashes."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import Windows
from collector.log.port import SIGNALS, TRACES, Headers, Position
from collector.records.signal import Signal
from collector.records.traces import SessionRecord, TraceRecord, VerdictRecord, decode_traces
from collector.scoring.cached_session import AWAKE
from tests.property.test_scoring_property import arrivals, final
from tests.support.examples import examples
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.scoring_fakes import (
    append,
    append_verdict,
    judged_rules,
    make_scorer,
    run_to_end,
    scored_log,
    signals,
    verdict_of,
    windows,
)
from tests.support.signals import jsons_in, published_in

Arrival = tuple[float, TraceRecord | VerdictRecord]


@st.composite
def conversations(draw: st.DrawFn) -> list[Arrival]:
    """Traces, and verdicts about them: soon or late, twice, or about a revision that is gone. Some never come."""
    arrived: list[Arrival] = []
    traces: list[TraceRecord] = []
    now = 0.0
    for at, record in draw(arrivals()):
        now = max(now, at)
        arrived.append((now, record))
        traces.append(record)
        for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
            about = draw(st.sampled_from(traces))
            salt = draw(st.sampled_from(["", "another"]))
            arrived.append((now, verdict_of(about, salt=salt)))
    return arrived


async def _lived(
    arrived: Sequence[Arrival],
    fuses: Sequence[int],
    *,
    atomic: bool,
    limits: Windows | None = None,
    max_lag: float = 1e9,
    awake: int = AWAKE,
    is_judged: bool = True,
) -> FaultyLog:
    """Feed in stages, be killed by each fuse in turn, end by draining; a judge answers for closed sessions."""
    log = scored_log(atomic=atomic)
    limits = limits or windows(idle=5.0, max_age=20.0, max_traces=3)
    judged = judged_rules(max_lag=max_lag) if is_judged else None
    left = list(fuses)
    answered: set[int] = set()
    stages = [arrived[n : n + 4] for n in range(0, len(arrived), 4)]
    for stage in [*stages, None, None]:
        for now, each in stage or ():
            if isinstance(each, TraceRecord):
                append(log, each, now, stand_in=is_judged)
            else:
                append_verdict(log, each, now)
        while True:
            log.restart()
            log.crash_after = left.pop(0) if left else None
            scorer = make_scorer(log, limits=limits, judged=judged, awake=awake)
            try:
                await (scorer.drain("idle") if stage is None else run_to_end(scorer, log))
            except Crash:
                continue
            break
        _answer(log, answered)
    return log


@settings(max_examples=examples(60), deadline=None)
@given(
    arrived=conversations(),
    fuses=st.lists(st.integers(0, 60), max_size=3),
    atomic=st.booleans(),
    max_traces=st.sampled_from([2, 3, 1000]),
    max_open=st.sampled_from([1, 2, 1000]),
    memory=st.sampled_from([1, 1_300, 2_500, 1 << 30]),
    max_lag=st.sampled_from([2.0, 1e9]),
)
def test_a_session_that_is_packed_writes_the_same_to_the_byte(
    arrived: list[Arrival],
    fuses: list[int],
    *,
    atomic: bool,
    max_traces: int,
    max_open: int,
    memory: int,
    max_lag: float,
) -> None:
    limits = windows(
        idle=5.0, max_age=20.0, max_traces=max_traces, max_open=max_open, memory=memory
    )

    def written(awake: int) -> list[tuple[Position, bytes, bytes, Headers]]:
        lived = _lived(arrived, fuses, atomic=atomic, limits=limits, max_lag=max_lag, awake=awake)
        every = asyncio.run(lived).written
        return [(each.position, each.key, each.value, each.headers) for each in every]

    assert written(awake=0) == written(awake=1 << 40)


def _answer(log: FaultyLog, answered: set[int]) -> None:
    for record in list(log.history(TRACES)):
        found = decode_traces(record.value)
        offset = record.position.offset
        if isinstance(found, SessionRecord) and found.due and offset not in answered:
            answered.add(offset)
            append_verdict(log, verdict_of(found))


def finals(log: FaultyLog) -> Counter[tuple[str, ...]]:
    """Distinct final signals per subject as it was, evaluator and revision of the trace."""
    ids = {each.id: each for each in signals(log) if each.final and each.method == "llm_judge"}
    return Counter(_subject(each) for each in ids.values())


def _subject(signal: Signal) -> tuple[str, ...]:
    if signal.scope == "session":
        return ("session", signal.id)
    return ("trace", signal.trace_id or "", str(signal.revision), signal.evaluator)


@settings(max_examples=examples(400), deadline=None)
@given(
    arrived=conversations(),
    fuses=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    atomic=st.booleans(),
    max_open=st.sampled_from([1, 2, 1000]),
    memory=st.sampled_from([1, 1_300, 2_500, 1 << 30]),
    is_judged=st.booleans(),
)
def test_a_crash_at_any_write_changes_no_signal(
    arrived: list[Arrival],
    fuses: list[int],
    *,
    atomic: bool,
    max_open: int,
    memory: int,
    is_judged: bool,
) -> None:
    limits = windows(idle=5.0, max_age=20.0, max_traces=3, max_open=max_open, memory=memory)
    arrived = [each for each in arrived if is_judged or isinstance(each[1], TraceRecord)]
    atomic = atomic or is_judged

    def lived(fuses: list[int], *, atomic: bool) -> FaultyLog:
        return asyncio.run(
            _lived(arrived, fuses, atomic=atomic, limits=limits, is_judged=is_judged)
        )

    calm, stormy = lived([], atomic=True), lived(fuses, atomic=atomic)

    assert set(jsons_in(stormy.history(SIGNALS))) == set(jsons_in(calm.history(SIGNALS)))
    assert final(stormy) == final(calm)
    if atomic:
        assert len(signals(stormy)) == len(signals(calm))
    texts = {(each.header.id, each.json) for each in published_in(stormy.history(SIGNALS))}
    assert len({id_ for id_, _ in texts}) == len(texts), "an id has one text, verdicts included"


@settings(max_examples=examples(120), deadline=None)
@given(
    arrived=conversations(),
    fuses=st.lists(st.integers(0, 60), max_size=4),
    atomic=st.booleans(),
)
def test_every_due_judged_evaluator_ends_in_exactly_one_final_outcome(
    arrived: list[Arrival], fuses: list[int], *, atomic: bool
) -> None:
    log = asyncio.run(_lived(arrived, fuses, atomic=atomic))

    assert set(finals(log).values()) <= {1}
    last = {
        (each.trace_id, each.evaluator): each
        for each in signals(log)
        if each.scope == "trace" and each.evaluator == "confidence"
    }
    judged = {
        (each.trace_id, each.evaluator)
        for each in signals(log)
        if each.final and each.evaluator == "confidence"
    }
    assert judged == set(last)
    sessions = [each for each in signals(log) if each.scope == "session" and each.final]
    reliable = {each.session_id for each in sessions if each.evaluator == "agent_reliability"}
    assert {each.session_id for each in sessions if each.evaluator == "tone"} == reliable


@settings(max_examples=examples(40), deadline=None)
@given(arrived=conversations())
def test_counters_count_a_judged_outcome_of_a_trace_once(arrived: list[Arrival]) -> None:
    log = asyncio.run(_lived(arrived, [], atomic=True))

    counted: Counter[tuple[str | None, int]] = Counter()
    for each in published_in(log.history(SIGNALS)):
        if each.header.evaluator == "confidence" and each.header.first:
            assert each.header.final
            counted[each.subject.trace_id, 0] += 1
    lives = Counter(
        each.session_id for each in signals(log) if each.evaluator == "latency" and each.final
    )
    if set(lives.values()) <= {1}:
        held = _always_held(arrived)
        assert {n for (trace, _), n in counted.items() if trace in held} <= {1}


Age = tuple[float, int, str]
"""Seen, start, trace id: the order in which traces leave a window, the oldest first."""


def _always_held(arrived: Sequence[Arrival]) -> set[str]:
    """Traces that scoring cannot forget by sliding them out: sent once, or among the newest three of their session.

    The newest are those seen last, whichever of their revisions counts. A repeat of a trace that has left the window
    is a new trace to scoring (rule 7 is about the traces in the window).
    """
    records = [each for _, each in arrived if isinstance(each, TraceRecord)]
    sent = Counter(record.trace.trace_id for record in records)
    ages: dict[str, dict[str, list[Age]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        trace = record.trace
        age = (record.seen, trace.start_time_unix_nano, trace.trace_id)
        ages[trace.session_id][trace.trace_id].append(age)
    newest = {
        trace_id
        for session in ages.values()
        for trace_id, mine in session.items()
        if sum(max(each) > min(mine) for other, each in session.items() if other != trace_id) < 3
    }
    return newest | {trace_id for trace_id, times in sent.items() if times == 1}
