"""Whatever the order in which signals come, the index keeps the same ones and the same sums."""

import random
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.query import Query
from collector.base.telemetry import Telemetry
from collector.log.port import SIGNALS, TRACES, Position, Record
from collector.records.signal_batch import batch_records, made
from tests.support import api_records as make
from tests.support.examples import examples

EVALUATORS = ("loop_detection", "agent_reliability")


def index_in(folder: str, *, max_traces: int = 1000) -> Index:
    return Index(
        Path(folder),
        size=4 << 20,
        max_traces=max_traces,
        content=True,
        families=ApiFamilies(Telemetry()),
    )


def record(topic: str, offset: int, value: bytes) -> Record:
    return Record(position=Position(topic, 0, offset), key=b"", value=value, time=make.START)


coming = st.lists(
    st.tuples(
        st.integers(1, 3),  # trace
        st.sampled_from(EVALUATORS),
        st.integers(0, 3),  # revision
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=12,
)


def signal_records(rows: list[tuple[int, str, int, float]]) -> list[Record]:
    made: list[Record] = []
    for offset, (number, evaluator, revision, score) in enumerate(rows):
        of = make.trace(number)
        is_session = evaluator == "agent_reliability"
        build: Any = make.session_signal if is_session else make.signal
        signal = (
            build(of, evaluator, score, revision=revision)
            if is_session
            else build(of, evaluator, score=score, revision=revision)
        )
        made.append(record(SIGNALS, offset, make.value(signal)))
    return made


@settings(max_examples=examples(80), deadline=None)
@given(rows=coming, random=st.randoms(use_true_random=False))
def test_the_highest_revision_wins_then_the_later_offset(
    rows: list[tuple[int, str, int, float]], random: Any
) -> None:
    records = signal_records(rows)
    expected: dict[tuple[str | None, str], tuple[int, int, float]] = {}
    for offset, (number, evaluator, revision, score) in enumerate(rows):
        subject = None if evaluator == "agent_reliability" else make.trace(number).trace_id
        key = (subject, evaluator)
        expected[key] = max(expected.get(key, (-1, -1, 0.0)), (revision, offset, score))
    shuffled = [*records, *records]
    random.shuffle(shuffled)

    with tempfile.TemporaryDirectory() as folder:
        index = index_in(folder)
        for at in range(0, len(shuffled), 3):
            index.take_signals(shuffled[at : at + 3])
        kept = [msgspec.json.decode(raw) for raw in Query(index).signals(limit=100).items]
        index.close()

    assert {(s["trace_id"], s["evaluator"]): s["score"] for s in kept} == {
        key: score for key, (_, _, score) in expected.items()
    }


@pytest.mark.parametrize("every", [7, 200])
def test_the_index_is_the_same_however_its_records_come_in_batches(every: int) -> None:
    """Of more traces and sessions than are looked up with one statement."""
    draw = random.Random(every)
    coming = [
        (draw.randrange(90), draw.randrange(60), draw.randrange(3), draw.random() < 0.5)
        for _ in range(400)
    ]
    traces: list[Record] = []
    signals: list[Record] = []
    for offset, (number, session, revision, is_trace) in enumerate(coming):
        of = make.trace(number + 1, session_id=f"s-{session}")
        if is_trace:
            traces.append(record(TRACES, offset, make.trace_value(of, revision=revision)))
            continue
        own = make.signal(of, score=revision / 2, revision=revision)
        signal_of = make.session_signal(of, "agent_reliability", 0.5, revision=revision)
        (joined,) = batch_records([made(own), made(signal_of)])
        assert isinstance(joined.value, bytes)
        position = Position(SIGNALS, 0, 2 * offset + 1)
        signals.append(
            Record(position=position, key=b"", value=joined.value, time=make.START, count=2)
        )

    def shown(size: int) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory() as folder:
            index = index_in(folder)
            for at in range(0, len(traces), size):
                index.take_traces(traces[at : at + size])
            for at in range(0, len(signals), size):
                index.take_signals(signals[at : at + size])
            query = Query(index)
            sessions = query.sessions(limit=100).items
            found = (
                sessions,
                [query.session(each.session_id) for each in sessions],
                query.agents(limit=100).items,
                query.signals(limit=1000).items,
            )
            index.close()
        return found

    assert shown(every) == shown(1)


@settings(max_examples=examples(60), deadline=None)
@given(
    coming=st.lists(
        st.tuples(
            st.integers(1, 4),  # trace
            st.integers(1, 2),  # session
            st.integers(0, 2),  # revision
            st.sampled_from(["trace", "score", "close"]),
            st.none() | st.floats(0, 1),
        ),
        max_size=25,
    ),
    max_traces=st.integers(1, 4),
)
def test_sums_of_agents_are_those_of_their_sessions(
    coming: list[tuple[int, int, int, str, float | None]], max_traces: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = index_in(folder, max_traces=max_traces)
        for offset, (number, session, revision, kind, score) in enumerate(coming):
            of = make.trace(number, session_id=f"s-{session}", agent=f"agent-{revision}")
            if kind == "trace":
                value = make.trace_value(of, revision=revision)
                index.take_traces([record(TRACES, offset, value)])
            elif kind == "close":
                index.take_traces([record(TRACES, offset, make.closing_value(of.session_id))])
            else:
                signal = make.session_signal(of, "agent_reliability", score, revision=revision)
                index.take_signals([record(SIGNALS, offset, make.value(signal))])
        query = Query(index)
        agents = query.agents(limit=100).items
        sessions = query.sessions(limit=100).items
        shown = {each.session_id: query.session(each.session_id)[0] for each in sessions}
        index.close()

    assert sum(agent.sessions for agent in agents) == len(sessions)
    assert sum(agent.traces for agent in agents) == sum(s.traces for s in sessions)
    for session in sessions:
        assert session.traces == len(shown[session.session_id].traces) <= max_traces
    for agent in agents:
        own = [s.reliability for s in sessions if s.agent == agent.agent]
        assert agent.scored == sum(score is not None for score in own)
