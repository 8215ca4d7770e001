"""Whatever the order in which signals come, the index keeps the same ones and the same sums."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.query import Query
from collector.log.port import SIGNALS, TRACES, Position, Record
from collector.telemetry import Telemetry
from tests.support import api_records as make

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


@settings(max_examples=80, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
