"""A signal and its headers as they are published, and records of topic `signals`: many signals in one, or one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.base.errors import Undecodable
from collector.log.port import SIGNALS, New, Position, Record
from collector.records.signal import (
    MAX_BYTES,
    Coverage,
    Signal,
    decode_signal,
    encode_signal,
    redacted,
    rfc3339,
)
from collector.records.signal_batch import (
    MAX_LINES,
    NewSignal,
    Published,
    batch_records,
    headers_of,
    made,
    signals_in,
    single_record,
)
from evaluators.model import Failure
from tests.support.signals import signal


def make_signal(**changed: Any) -> Signal:
    signal = Signal(
        id="0" * 32,
        time=rfc3339(1.5),
        scope="trace",
        service="support bot",
        agent="planner",
        trace_id="a" * 32,
        span_id="b" * 16,
        session_id="s-1",
        session_source="session.id",
        evaluator="confidence",
        evaluator_version="1",
        method="deterministic",
        outcome="scored",
        score=0.5,
    )
    return msgspec.structs.replace(signal, **changed)


def test_fields_stand_in_the_published_order() -> None:
    value = encode_signal(make_signal())

    assert list(msgspec.json.decode(value)) == list(Signal.__struct_fields__)
    assert decode_signal(value) == make_signal()


def test_what_is_no_signal_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        decode_signal(b"{}")


def test_the_explanation_is_cut_first() -> None:
    signal = make_signal(explanation="\u0001" * MAX_BYTES, metadata={"task": "t" * 5000})

    cut = decode_signal(encode_signal(signal))

    assert len(encode_signal(signal)) <= MAX_BYTES
    assert cut.truncated == "explanation"
    assert cut.explanation == "\u0001" * 1024
    assert cut.metadata == signal.metadata


def test_then_texts_of_the_metadata() -> None:
    signal = make_signal(
        explanation="short", truncated="prompt", metadata={"task": "t" * 2 * MAX_BYTES}
    )

    cut = decode_signal(encode_signal(signal))

    assert cut.truncated == "prompt, metadata"
    assert cut.metadata == {"task": "t" * 1024}
    assert cut.explanation == "short"


def test_a_thousand_traces_of_numbers_fit_too() -> None:
    per_trace = {f"{n:032x}": {"confidence": 0.123456, "step_risk": 0.5} for n in range(2000)}

    value = encode_signal(make_signal(metadata={"per_trace_signals": per_trace, "n": 2000}))

    cut = decode_signal(value)
    assert len(value) <= MAX_BYTES
    assert cut.truncated == "metadata"
    assert cut.metadata["n"] == 2000


@pytest.mark.parametrize(
    "changed",
    [
        {"evidence": tuple(f"{n:016x}" for n in range(9000))},
        {"error": Failure(type="t", message="m" * 2 * MAX_BYTES)},
        {"metadata": {f"key{n}": n for n in range(20_000)}},
    ],
)
def test_whatever_is_large_is_cut(changed: dict[str, Any]) -> None:
    value = encode_signal(make_signal(**changed))

    assert len(value) <= MAX_BYTES
    assert decode_signal(value).truncated


def test_redaction_leaves_numbers_and_drops_every_text() -> None:
    signal = make_signal(
        explanation="said",
        metadata={"task": "secret", "n": 1, "calls": [{"name": "secret", "score": 0.5}]},
        error=Failure(type="exception", message="secret"),
    )

    shown = redacted(signal)

    assert b"secret" not in encode_signal(shown)
    assert shown.metadata == {"task": None, "n": 1, "calls": [{"name": None, "score": 0.5}]}
    assert shown.explanation is None
    assert shown.id == signal.id


def test_headers_of_a_trace() -> None:
    assert dict(headers_of(made(make_signal()))) == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": b"0" * 32,
        "ce_source": b"/agents/support%20bot",
        "ce_type": b"spanwise.signal.trace.v1",
        "ce_time": b"1970-01-01T00:00:01.500000Z",
        "ce_subject": b"trace/" + b"a" * 32,
        "traceparent": b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01",
    }


def test_headers_of_a_session_name_no_trace() -> None:
    headers = dict(
        headers_of(made(make_signal(scope="session", trace_id=None, span_id=None), first=True))
    )

    assert headers["ce_subject"] == b"session/s-1"
    assert headers["spanwise_first"] == b"1"
    assert "traceparent" not in headers


LAST = 41


def read(new: New, last: int = LAST) -> list[Published]:
    return list(signals_in(record(new, last)))


def record(new: New, last: int = LAST) -> Record:
    assert isinstance(new.value, bytes)
    return Record(
        position=Position(SIGNALS, 2, last),
        key=new.key,
        value=new.value,
        time=7.5,
        headers=new.headers,
        count=new.count,
    )


def some() -> list[NewSignal]:
    """Two of a trace, one of another, one of their session."""
    trace, other = signal(), signal(trace="t-2", score=0.0, evaluator="runaway")
    failed = replace(
        trace,
        evaluator="groundedness",
        score=None,
        outcome="failed",
        error=Failure(type="TimeoutError", message="ünd\u2028 so"),
    )
    session = signal(trace=None, coverage=Coverage(expected=4, present=3), explanation="a\nb")
    return [
        made(trace, first=True, start=5),
        made(failed, start=5),
        made(other, start=6),
        made(session),
    ]


def test_a_batch_is_read_as_its_signals_alone_are() -> None:
    signals = some()
    (batch,) = batch_records(signals)

    together = read(batch)
    alone = [read(single_record(each), LAST - 3 + n)[0] for n, each in enumerate(signals)]

    assert batch.count == 4
    assert batch.key == b"s-1"
    assert together == alone
    assert [each.position.offset for each in together] == [38, 39, 40, 41]
    assert [each.header.first for each in together] == [True, False, False, False]
    assert [each.subject.start for each in together] == [5, 5, 6, 0]
    assert together[3].header.coverage == (4, 3)
    assert together[1].header.error == "TimeoutError"


def test_very_large_signals_take_several_records() -> None:
    large = made(signal(explanation="x" * 60_000))

    records = list(batch_records([large] * 9))

    assert sum(each.count for each in records) == 9
    assert len(records) == 3
    assert all(
        isinstance(each.value, bytes) and len(each.value) < MAX_LINES + 9_000 for each in records
    )
    assert [each.json for new in records for each in read(new)] == [large.json] * 9


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"\x93\xa5batch\x90\xc4\x03abc", b"{}", b"\xc1"]
)
def test_what_holds_no_signals_is_said_to(value: bytes) -> None:
    with pytest.raises(Undecodable):
        signals_in(record(New(topic=SIGNALS, key=b"", value=value)))


def test_a_record_of_another_number_of_offsets_is_damaged() -> None:
    (batch,) = batch_records(some())

    with pytest.raises(Undecodable, match="3 signals"):
        signals_in(record(replace(batch, count=3)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 400))
def test_damage_raises_one_declared_error(junk: bytes, at: int) -> None:
    (batch,) = batch_records(some())
    assert isinstance(batch.value, bytes)
    value = batch.value[:at] + junk + batch.value[at + len(junk) :]

    try:
        signals_in(record(replace(batch, value=value)))
    except Undecodable:
        return


def test_fields_that_a_newer_version_added_are_ignored() -> None:
    """At the end of the arrays, and in the JSON."""
    (batch,) = batch_records(some()[:1])
    assert isinstance(batch.value, bytes)
    tag, [[subject, [header]]], lines = msgspec.msgpack.decode(batch.value)
    newer = [tag, [[[*subject, "new"], [[*header, 1.5]], "new"]], lines, {"new": 1}]

    value = msgspec.msgpack.encode(newer)

    assert read(replace(batch, value=value)) == read(batch)
