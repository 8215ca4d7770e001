"""The budget of bytes in flight, the share of one sender, and what a sender that is refused is answered."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.base.errors import LogFull, LogUnavailable
from collector.base.telemetry import Telemetry
from collector.otlp.split import SplitRequest
from collector.receiver.admission import WAITING, Admission
from collector.receiver.answers import (
    OK,
    Code,
    HungUp,
    NoRoom,
    OverShare,
    SlowSender,
    Stopping,
    reason,
    refused,
    taken,
)
from collector.receiver.families import ReceiverFamilies
from collector.records.otlp_signals import TRACES
from tests.support.counted import counted


class Stand:
    """800 bytes: 700 for one sender, 400 while others wait."""

    def __init__(self, share: float = 0.5) -> None:
        self.telemetry = Telemetry()
        self.now = 0.0
        self.admission = Admission(
            limit=800,
            share=share,
            gauge=ReceiverFamilies(self.telemetry).in_flight_bytes,
            clock=lambda: self.now,
        )


def test_what_does_not_fit_is_refused_and_takes_nothing() -> None:
    admission = Stand().admission

    with admission.ticket("a") as first, admission.ticket("b") as second:
        first.grow(400)
        second.grow(400)
        with pytest.raises(NoRoom):
            second.grow(401)

        assert admission.held == 800
    assert (admission.held, len(admission._senders)) == (0, 0)


def test_a_ticket_gives_everything_back_when_its_request_fails() -> None:
    stand = Stand()

    def fail() -> None:
        with stand.admission.ticket("a") as ticket:
            ticket.grow(10)
            ticket.grow(5)
            raise ValueError("bug")

    with pytest.raises(ValueError, match="bug"):
        fail()

    assert stand.admission.held == 0
    assert counted(stand.telemetry, "in_flight_bytes") == 0


def test_a_sender_alone_leaves_room_for_the_first_request_of_another() -> None:
    admission = Stand().admission

    with admission.ticket("a") as first, admission.ticket("a") as more, admission.ticket("b") as b:
        first.grow(700)
        with pytest.raises(OverShare):
            more.grow(1)
        b.grow(100)


def test_the_only_request_of_a_sender_has_the_whole_budget() -> None:
    admission = Stand(share=0.0).admission

    with admission.ticket("a") as ticket:
        ticket.grow(800)
        with admission.ticket("b") as b, pytest.raises(NoRoom):
            b.grow(1)
    with admission.ticket("a") as ticket:
        ticket.grow(800)


def test_while_another_waits_a_sender_holds_its_share() -> None:
    stand = Stand()
    admission = stand.admission

    with admission.ticket("a") as first, admission.ticket("a") as second:
        first.grow(300)
        second.grow(300)
        with admission.ticket("b") as b, pytest.raises(NoRoom):
            b.grow(300)
        with pytest.raises(OverShare):  # it holds more than 400 already
            second.grow(301)
    with admission.ticket("a") as first, admission.ticket("a") as second:
        first.grow(300)
        with pytest.raises(OverShare):
            second.grow(101)
        second.grow(100)
        with admission.ticket("b") as b:
            b.grow(300)


def test_who_waited_is_forgotten_after_a_while() -> None:
    stand = Stand()
    admission = stand.admission
    with admission.ticket("b") as b, pytest.raises(NoRoom):
        b.grow(801)

    with admission.ticket("a") as first, admission.ticket("a") as second:
        first.grow(300)
        stand.now = WAITING - 0.1
        with pytest.raises(OverShare):
            second.grow(101)
        stand.now = WAITING
        second.grow(400)


def test_a_sender_does_not_wait_for_itself() -> None:
    admission = Stand().admission

    with admission.ticket("a") as first, admission.ticket("a") as second:
        first.grow(300)
        with pytest.raises(OverShare):
            second.grow(401)
        second.grow(400)


def test_many_refused_senders_take_no_memory() -> None:
    admission = Stand().admission

    for number in range(100):
        with admission.ticket(str(number)) as ticket, pytest.raises(NoRoom):
            ticket.grow(801)

    assert len(admission._refused) == 2


def test_a_share_above_seven_eighths_holds_alone_too() -> None:
    admission = Stand(share=1.0).admission

    with admission.ticket("a") as first, admission.ticket("a") as second:
        first.grow(400)
        second.grow(400)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999999])
def test_a_refusal_asks_for_one_to_four_seconds(jitter: float) -> None:
    answer = refused("full", jitter=lambda: jitter)

    assert answer.code is Code.UNAVAILABLE
    assert answer.delay is not None
    assert 1.0 <= answer.delay <= 4.0
    assert answer.retry_after is not None
    assert answer.delay <= answer.retry_after <= 4


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
