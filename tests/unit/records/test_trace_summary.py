"""Scoring sees of a trace what the worker saw that read it, whoever wrote its record."""

import msgspec
import pytest

from collector.base.errors import Undecodable
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.log.port import MAX_RECORD, TRACES, Headers, Position, Record
from collector.reading.port import PackedTrace, reader_settings
from collector.reading.worker import JobRunner
from collector.records import trace_summary
from collector.records.codec import encode
from collector.records.trace_outcomes import outcomes_of
from collector.records.trace_size import room_beside
from collector.records.trace_summary import Summariser, headers_of, packed_summary
from collector.records.trace_views import (
    SummarisedTrace,
    Unread,
    counted,
    decode_counted_trace,
    decode_summarised,
    without_spans,
    work_in,
)
from collector.records.traces import TraceRecord
from evaluators.model import ToolCall, Trace
from tests.support.bench_traces import read_jobs
from tests.support.evaluating import a_trace

CONFIG = Config.model_validate({"embedder": {"kind": "none"}})
RUNNER = JobRunner(reader_settings(CONFIG), plan_from(CONFIG, only=["confidence"]))
OURS = Summariser()


def read_traces() -> list[PackedTrace]:
    """What workers answer for the load of the bench."""
    return [RUNNER.read_packed(each) for each in read_jobs()]


def record(value: bytes, headers: Headers = ()) -> Record:
    return Record(position=Position(TRACES, 0, 7), key=b"", value=value, time=0.0, headers=headers)


def record_of(read: PackedTrace) -> Record:
    old = old_record_of(trace_summary.unpacked(read.packed))
    return record(old.value, headers_of(read.summary, read.outcomes, revision=2, seen=3.0))


def old_record_of(trace: Trace) -> Record:
    """As a version without summaries wrote it."""
    return record(encode(TraceRecord(trace=trace, spans=(b"x",), revision=2, seen=3.0)))


def seen(found: Record, summariser: Summariser = OURS) -> SummarisedTrace:
    trace = decode_summarised(found, summariser)
    assert isinstance(trace, SummarisedTrace)
    return trace


def writing() -> Trace:
    return a_trace(tool_calls=(ToolCall(name="book", arguments={"n": 1}, result="done"),))


def packed(trace: Trace, summariser: Summariser) -> PackedTrace:
    raw = trace_summary.packed_trace(trace)
    summary = packed_summary(summariser.summary(trace), 1 << 20)
    return PackedTrace(service="s", session_id="s", packed=raw, summary=summary)


def test_a_worker_and_the_reader_of_an_old_record_say_the_same() -> None:
    found = read_traces()

    assert len(found) == 12
    for each in found:
        new, old = seen(record_of(each)), seen(old_record_of(trace_summary.unpacked(each.packed)))
        assert new.summary == old.summary
        assert (new.revision, new.seen) == (old.revision, old.seen) == (2, 3.0)
        assert new.outcomes == outcomes_of(record_of(each).headers)
        assert old.outcomes is None


def test_who_needs_no_more_than_the_summary_does_not_look_at_the_record() -> None:
    for each in map(record_of, read_traces()):
        outline = msgspec.structs.replace(each, value=b"not looked at")

        assert seen(outline).summary == seen(each).summary
        assert counted(outline) == decode_counted_trace(each.value) == counted(record(each.value))
        assert isinstance(work_in(outline), Unread)


def test_a_header_that_cannot_be_read_costs_a_look_at_the_record() -> None:
    (read, *_) = read_traces()
    whole = record_of(read)
    broken = msgspec.structs.replace(whole, headers=((trace_summary.HEADER, b"\xc1"),))

    assert seen(broken).summary == seen(whole).summary
    assert counted(broken) == counted(whole)


def test_a_summary_by_other_rules_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = Summariser(["book"])
    value = record_of(packed(writing(), harmless))

    assert len(seen(value, harmless).summary.turn.writes) == 0
    assert len(seen(value).summary.turn.writes) == 1
    monkeypatch.setattr(trace_summary, "VERSION", trace_summary.VERSION + 1)
    assert Summariser(["book"]).rules != harmless.rules


def test_the_summary_does_not_need_the_spans() -> None:
    (read, *_) = read_traces()
    whole = record_of(read)

    assert seen(record(without_spans(whole.value))).summary == seen(whole).summary


def test_a_record_has_room_for_its_summary_or_goes_without() -> None:
    trace = a_trace(agent="a" * 1000)
    raw = trace_summary.packed_trace(trace)

    assert packed_summary(OURS.summary(trace), room=1000) == b""
    assert room_beside(raw, (b"x" * 1000,)) < MAX_RECORD - 1000 - len(raw)
    assert seen(old_record_of(trace)).summary.agent == trace.agent


@pytest.mark.parametrize("trace", [b"\xc1", b"\x80", b"\x01"])
def test_a_trace_that_is_none_is_undecodable(trace: bytes) -> None:
    whole = TraceRecord(trace=a_trace(), spans=(), revision=0, seen=0.0)
    value = encode(msgspec.structs.replace(whole, trace=msgspec.Raw(trace)))

    with pytest.raises(Undecodable):
        seen(record(value))
