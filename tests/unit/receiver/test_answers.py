"""What senders are answered."""

import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.base.errors import LogFull, LogUnavailable
from collector.otlp.split import SplitRequest
from collector.receiver.answers import (
    OK,
    Code,
    HungUp,
    NoRoom,
    OverShare,
    ReceiverReply,
    SlowSender,
    Stopping,
    reason,
    refused,
    taken,
    too_large,
    trailers,
)
from collector.records.otlp_signals import TRACES


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999999])
def test_a_refusal_asks_for_one_to_four_seconds(jitter: float) -> None:
    answer = refused("full", jitter=lambda: jitter)

    assert answer.code is Code.UNAVAILABLE
    assert answer.delay is not None
    assert 1.0 <= answer.delay <= 4.0
    assert answer.retry_after is not None
    assert answer.delay <= answer.retry_after <= 4


def test_the_delay_stands_in_both_trailers() -> None:
    answered = dict(trailers(refused("full", jitter=lambda: 0.25)))

    own = RetryInfo.FromString(answered["google.rpc.retryinfo-bin"])
    inside = RetryInfo()
    assert Status.FromString(answered["grpc-status-details-bin"]).details[0].Unpack(inside)
    assert own == inside
    assert (own.retry_delay.seconds, own.retry_delay.nanos) == (1, 500_000_000)


def test_partial_success_is_exact_and_short_and_full_success_is_empty() -> None:
    assert taken(SplitRequest(accepted=3), "spans") is OK
    assert TRACES.response(0, "").SerializeToString() == b""
    reasons = ["trace_id is all zeros" * 40] * 5

    answer = taken(SplitRequest(accepted=1, invalid=7, too_large=2, reasons=reasons), "spans")
    sent = TRACES.response(answer.rejected, answer.message).SerializeToString()
    answered = ExportTraceServiceResponse.FromString(sent).partial_success

    assert answered.rejected_spans == 9
    assert answered.error_message.startswith("9 spans rejected: trace_id is all zeros")
    assert len(answered.error_message.encode()) <= 1024


def test_too_large_is_413_over_http_though_its_code_maps_to_429() -> None:
    assert too_large("no").http_status == 413
    assert ReceiverReply(code=Code.RESOURCE_EXHAUSTED).http_status == 429


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (NoRoom(), "no_room"),
        (OverShare(), "share"),
        (SlowSender(), "slow"),
        (HungUp(), "hung_up"),
        (Stopping(), "stopping"),
        (LogFull(), "log"),
        (LogUnavailable(), "log"),
        (ValueError(), "fault"),
    ],
)
def test_every_refusal_has_a_reason(error: Exception, named: str) -> None:
    assert reason(error) == named
