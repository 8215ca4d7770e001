from typing import Any

import msgspec
import pytest

from collector.base.errors import Undecodable
from collector.records.signal import (
    MAX_BYTES,
    Signal,
    decode_signal,
    encode_signal,
    redacted,
    rfc3339,
)
from collector.records.signal_batch import headers_of, made
from evaluators.model import Failure


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
