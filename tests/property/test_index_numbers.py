"""Whatever comes in whatever order, the numbers for charts are those of the traces and signals in the index."""

import tempfile
from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.api.index import Index
from collector.api.outcomes import StoredOutcome, counting, pack, unpack
from collector.api.reading import Reading
from collector.api.search import text_of
from collector.api.store import TraceEntry, session_subject, trace_subject
from collector.log.port import SIGNALS, TRACES
from evaluators.model import Tokens
from tests.property.test_index_order import index_in, record
from tests.support import api_records as make
from tests.support.examples import examples

EVALUATORS = ("loop_detection", "coherence")
Kept = dict[tuple[int, int], dict[str, tuple[float | None, bool | None]]]

coming = st.lists(
    st.tuples(
        st.integers(1, 4),  # trace
        st.integers(1, 2),  # session
        st.integers(0, 2),  # revision
        st.sampled_from(["trace", "score", "verdict", "session", "evict"]),
        st.none() | st.integers(0, 10_000),
    ),
    max_size=25,
)


def take(index: Index, offset: int, came: tuple[int, int, int, str, int | None]) -> None:
    number, session, revision, kind, value = came
    of = make.trace(
        number,
        session_id=f"s-{session}",
        cost_usd=value,
        tokens=Tokens(input=value, output=number),
        status="error" if revision else "ok",
        input=f"question {value}",
        output="Antwort" if revision else None,
    )
    score = None if value is None else value / 10_000
    if kind == "evict":
        index._evict()
    elif kind == "trace":
        index.take_traces([record(TRACES, offset, make.trace_value(of, revision=revision))])
    elif kind == "session":
        signal = make.session_signal(of, "agent_reliability", score, revision=revision)
        index.take_signals([record(SIGNALS, offset, make.value(signal))])
    else:
        method = "llm_judge" if kind == "verdict" else "embedding"
        packed_once = make.signal(
            of,
            EVALUATORS[session - 1],
            score=score,
            success=None if score is None else score > 0.5,
            revision=revision,
            method=method,
            final=kind == "verdict",
        )
        index.take_signals([record(SIGNALS, offset, make.value(packed_once))])


def words_in(reading: Reading) -> dict[str, int]:
    """How many traces each word is kept for."""
    execute = reading.connection.execute
    execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, row)")
    found = dict(execute("SELECT term, doc FROM words").fetchall())
    execute("DROP TABLE temp.words")
    return found


def words_of(traces: Iterable[TraceEntry]) -> dict[str, int]:
    return dict(
        Counter(word for each in traces for word in {*text_of(each.header).casefold().split()})
    )


def outcomes_in(reading: Reading) -> Kept:
    names = dict(reading.connection.execute("SELECT id, name FROM evaluators").fetchall())
    found = reading.connection.execute("SELECT session, subject, packed FROM outcomes")
    return {
        (session, subject): {names[e.evaluator]: (e.score, e.passed) for e in unpack(packed)}
        for session, subject, packed in found
    }


def outcomes_of_signals(reading: Reading) -> Kept:
    owners = reading.connection.execute("SELECT id, session FROM traces").fetchall()
    subjects = {trace_subject(row): session for row, session in owners}
    rows = [row for (row,) in reading.connection.execute("SELECT id FROM sessions").fetchall()]
    subjects |= {session_subject(row): row for row in rows}
    kept: Kept = {}
    for (subject,) in reading.connection.execute("SELECT subject FROM signals").fetchall():
        counted = counting(reading.signals_of(subject))
        kept[subjects[subject], subject] = {
            name: (each.score, each.success) for name, each in counted.items()
        }
    return kept


def failed_of(kept: Kept, numbers: dict[str, int]) -> dict[int, int]:
    """By session, the evaluators that it or one of its traces failed."""
    failed: dict[int, int] = {}
    for (session, _), outcomes in kept.items():
        for name, (_, passed) in outcomes.items():
            if passed is False:
                failed[session] = failed.get(session, 0) | 1 << numbers[name]
    return failed


@settings(max_examples=examples(120), deadline=None)
@given(coming=coming, max_traces=st.integers(1, 4))
def test_outcomes_and_sums_are_those_of_what_the_index_holds(
    coming: list[tuple[int, int, int, str, int | None]], max_traces: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = index_in(folder, max_traces=max_traces)
        for offset, came in enumerate(coming):
            take(index, offset, came)
        with index.reading() as reading:
            kept, expected = outcomes_in(reading), outcomes_of_signals(reading)
            names = dict(reading.connection.execute("SELECT name, id FROM evaluators").fetchall())
            rows = reading.connection.execute("SELECT id FROM sessions").fetchall()
            failed = failed_of(kept, names)
            assert [failed.get(row, 0) for (row,) in rows] == [
                entry.failed for (row,) in rows if (entry := reading.session(row))
            ]
            every = [each for (row,) in rows for each in reading.traces_of(row)]
            assert words_in(reading) == words_of(every)
            sessions = [(reading.session(row), reading.traces_of(row)) for (row,) in rows]
        index.close()

    assert kept == expected
    for session, traces in sessions:
        assert session is not None
        costs = [each.header.cost_usd for each in traces if each.header.cost_usd is not None]
        outputs = [each.header.tokens.output for each in traces if each.header.tokens.output]
        assert session.cost == (sum(costs) if costs else None)
        assert session.output_tokens == (sum(outputs) if outputs else None)
        assert session.errors == sum(each.header.status == "error" for each in traces)


def test_outcomes_are_read_as_they_were_written() -> None:
    packed_once = [
        StoredOutcome(1, 0.1234, True),
        StoredOutcome(2, None, None),
        StoredOutcome(900, 1.0, False),
    ]
    assert list(unpack(pack(packed_once))) == packed_once
