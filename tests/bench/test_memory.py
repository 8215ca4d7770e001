"""What is held in memory: of open spans, of sessions that rest, of recordings, and under lasting load.

In bytes by tracemalloc, but for lasting load (`make soak`): there in RssAnon, what the system cannot take back.
"""

import asyncio
import gc
import json
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

import grpc
import pytest
from msgspec.structs import replace as with_fields

from collector.assembly.closed_traces import ClosedTraces
from collector.assembly.open_traces import OpenTraces
from collector.base.frames import pack_frame
from collector.config.plan import embedder_from, plan_from, plan_settings
from collector.config.tree import Config, SessionWindow, TraceWindow
from collector.log.port import SPANS, TRACES, Position, Record
from collector.reading.trace_scoring import TraceScoring
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.trace_views import SummarisedTrace, decode_summarised
from collector.records.traces import TraceRecord
from collector.scoring.effects import PlacedTrace
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.service.evaluation import evaluate_recordings
from evaluators.digest import trace_digest
from evaluators.expectations import Expectations
from evaluators.run import SessionScorer
from tests.bench.measure import load_file, send, served, spans_in
from tests.bench.rest import SETTINGS, all_megabytes
from tests.support import agents, asking, dialect_spans
from tests.support.bench_traces import read_traces
from tests.support.open_traces_driver import finished
from tests.support.processes import status
from tests.support.sender import EXPORT
from tests.support.spans import Made, child, request, root

pytestmark = pytest.mark.bench


# --- open spans -------------------------------------------------------------------------------------------------------


def pieces() -> Iterator[bytes]:
    """200 traces of 8 to 30 spans of 4.3 KB, the root last, five spans to a record, as a batch of 64 is cut."""
    random = Random(7)
    for trace in range(1, 201):
        size = random.randint(8, 30)
        spans = [*(child(number, trace=trace) for number in range(2, size + 1)), root(trace)]
        sized: list[Made] = [replace(each, text="x" * 4300) for each in spans]
        yield from (request(*sized[start : start + 5]) for start in range(0, size, 5))


def memory_ratio(*, by_ref: bool = False) -> float:
    """Bytes that open traces add / the bytes of their pieces; `by_ref`: they hold where these are in the log."""
    values = [*pieces()]
    window = TraceWindow(root_grace=1e6, idle=1e6, max_age=1e6)
    open_traces = OpenTraces(0, window, ClosedTraces(), start=None, by_ref=by_ref)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for offset, value in enumerate(values):
            fresh = bytes(bytearray(value))
            position = Position(SPANS, 0, offset)
            finished(open_traces.taking(Record(position=position, key=b"", value=fresh, time=1.0)))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(open_traces) == 200
    return (after - before) / sum(map(len, values))


@pytest.mark.parametrize(("by_ref", "mark"), [(False, 1.1), (True, 0.1)])
def test_an_open_span_takes_its_wire_bytes_or_a_tenth_where_they_stay_in_the_log(
    by_ref: bool, mark: float
) -> None:
    ratio = memory_ratio(by_ref=by_ref)

    print(f"memory per open span / its wire bytes, by reference {by_ref}: {ratio:.3f}")
    assert ratio <= mark


# --- sessions that rest -----------------------------------------------------------------------------------------------

SESSIONS = 200
SAMPLE = 30
"""Traces that are read and scored; the sessions are made of their copies."""


@pytest.mark.parametrize(("turns", "mark"), [(1, 1_500), (5, 3_000)])
def test_a_session_that_rests_takes_little(turns: int, mark: int) -> None:
    assert session_bytes(turns) <= mark


def session_bytes(turns: int) -> float:
    """The mean of some hundred sessions of so many traces each, with all of their outcomes, when all of them rest."""
    config = Config()
    plan = plan_from(config)
    scoring = TraceScoring(plan, embedder_from(plan_settings(config)), Expectations(()))
    # Before: to trace allocations makes reading and scoring many times slower.
    sample = [(trace, scoring.outcomes(trace)) for trace in read_traces(SAMPLE)]
    rules = Rules.of(plan, lambda: SessionScorer(plan))
    sessions = OpenSessions(partition=0, rules=rules, limits=SessionWindow(), awake=0)

    def take(number: int) -> None:
        """A copy of one of the sample, as a trace of its own in its own session."""
        trace, outcomes = sample[number % SAMPLE]
        digest = trace_digest([f"{number:016x}"])
        start = trace.start_time_unix_nano + number
        trace = replace(trace, digest=digest, start_time_unix_nano=start, service="agent")
        trace = replace(trace, trace_id=digest[:32])
        value = encode(TraceRecord(trace=trace, spans=(), revision=0, seen=float(number)))
        stored = Record(position=Position(TRACES, 0, number), key=b"", value=value, time=0.0)
        record = decode_summarised(stored, rules.summariser)
        assert isinstance(record, SummarisedTrace)
        key, now = session_key("agent", f"session-{number // turns:08d}"), 1.7e9 + number / 1e4
        assert not [*sessions.make_room(record, key=key, offset=number, now=now)]
        record = with_fields(record, outcomes=outcomes)
        task = sessions.take(record, key=key, offset=number, now=now)
        assert isinstance(task, PlacedTrace)
        sessions.finish(task, {})

    def taken(first: int, last: int) -> int:
        for number in range(first * turns, last * turns):
            take(number)
        sessions.committed(0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = taken(0, SESSIONS // 2)  # what is remembered of any trace is full by then
        return (taken(SESSIONS // 2, SESSIONS) - before) / (SESSIONS - SESSIONS // 2)
    finally:
        tracemalloc.stop()


# --- `evaluate` -------------------------------------------------------------------------------------------------------

TEXT = "the order was shipped on friday and will arrive in two days " * 1_500


def session(number: int) -> Iterator[bytes]:
    """Two traces of 90 kB each, the spans of one in two requests."""
    for trace in (2 * number + 1, 2 * number + 2):
        said = [{"role": "assistant", "parts": [{"type": "text", "content": f"{trace} {TEXT}"}]}]
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": f"s{number}",
            "gen_ai.output.messages": json.dumps(said),
        }
        agent = {"gen_ai.operation.name": "invoke_agent"}
        for span in (
            dialect_spans.SpanSpec(id=2, parent=1, attributes=chat),
            dialect_spans.SpanSpec(id=1, attributes=agent, end=9_999),
        ):
            yield dialect_spans.request(span, trace_id=f"{trace:032x}")


def peak(folder: Path, sessions: int) -> float:
    """Bytes that are held at most, in MiB, while recordings of so many sessions are scored."""
    file = folder / f"{sessions}.otlp"
    with file.open("wb") as stream:
        for number in range(sessions):
            stream.writelines(map(pack_frame, session(number)))
    config = Config(workers=0)
    plan = plan_from(config, only=["step_efficiency"])
    closed: list[int] = []
    gc.collect()
    tracemalloc.start()
    try:
        asyncio.run(
            evaluate_recordings(
                config, plan, [file], lambda _: None, lambda each: closed.append(each.number)
            )
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert closed == list(range(1, sessions + 1))
    return most / (1 << 20)


def test_evaluate_holds_a_few_sessions_however_many_there_are(tmp_path: Path) -> None:
    """Reached: 1.1. Either batch without a bound: above 2."""
    peak(tmp_path, 1)  # what is imported and cached once

    less, more = peak(tmp_path, 70), peak(tmp_path, 280)

    print(f"most that is held of a recording and of four: {less:.1f} and {more:.1f} MiB")
    assert more <= 1.5 * less


# --- lasting load -----------------------------------------------------------------------------------------------------

RATE = 600
"""Spans per second: a part of what one core scores, so that nothing waits."""
ENDLESS, SENDERS = 30, 6


@pytest.mark.slow
@pytest.mark.timeout(4500)
def test_memory_is_level_after_three_minutes() -> None:
    """Sessions close after a minute of silence, so that as many are open in the last minute as in the third."""
    file = load_file(64)
    passes = max(1, round(60 * RATE / spans_in(file)))
    found: list[float] = []
    with served(*SETTINGS, "windows.session.idle=1m") as it:
        it.become_ready()
        for minute in range(10):
            base = 1 + minute * passes
            send(it.grpc, file, "--rate", str(RATE), passes=passes, base=base)
            found.append(all_megabytes(it))
    print("RssAnon of all processes, MiB, minute by minute:", [round(each) for each in found])

    assert found[9] / found[2] <= 1.05


@pytest.mark.slow
@pytest.mark.timeout(4500)
def test_an_hour_of_endless_sessions_is_level_once_their_windows_are_full() -> None:
    """300 spans a second in 30 sessions that never close. A window has its 1,000 turns after 17 minutes."""
    text, minutes = "word " * 120, 60
    found: list[float] = []
    with (
        served("embedder.kind=none", "windows.trace.root_grace=1s") as it,
        grpc.insecure_channel(it.grpc) as channel,
        ThreadPoolExecutor(SENDERS) as pool,
    ):
        call = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        began = time.monotonic()

        def send_turns(sender: int) -> None:
            """One turn of ten spans a second for each of its sessions."""
            for number in range(60 * minutes):
                for each in range(sender, ENDLESS, SENDERS):
                    name, said = f"s{each}", f"{number} {text}"
                    tools = [
                        asking.span(name, "", number=number, child=f"tool{n}") for n in range(9)
                    ]
                    turn = [asking.span(name, said, said, number=number), *tools]
                    call(agents.request("desk-bot", turn), timeout=60)
                time.sleep(max(0.0, began + number + 1 - time.monotonic()))

        sending = [pool.submit(send_turns, each) for each in range(SENDERS)]
        for minute in range(1, minutes + 1):
            time.sleep(max(0.0, began + 60 * minute - time.monotonic()))
            found.append(status(it.pid, "RssAnon") / 1024)
        for each in sending:
            each.result()
    print("RssAnon of the main process, MiB, minute by minute:", [round(each) for each in found])

    assert max(found[50:]) / max(found[20:30]) <= 1.1
