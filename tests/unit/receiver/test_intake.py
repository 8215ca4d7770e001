"""The budget of bytes in flight."""

from __future__ import annotations

import pytest

from collector.receiver.answers import NoRoom
from collector.receiver.families import ReceiverFamilies
from collector.receiver.intake import Admission
from collector.telemetry import Telemetry


def test_what_does_not_fit_is_refused_and_takes_nothing() -> None:
    admission = Admission(limit=100, gauge=ReceiverFamilies(Telemetry()).in_flight_bytes)

    with admission.ticket() as first, admission.ticket() as second:
        first.grow(60)
        second.grow(40)
        with pytest.raises(NoRoom):
            second.grow(41)

        assert admission.held == 100
    assert admission.held == 0


def test_a_ticket_gives_everything_back_when_its_request_fails() -> None:
    telemetry = Telemetry()
    admission = Admission(limit=100, gauge=ReceiverFamilies(telemetry).in_flight_bytes)

    def fail() -> None:
        with admission.ticket() as ticket:
            ticket.grow(10)
            ticket.grow(5)
            raise ValueError("bug")

    with pytest.raises(ValueError, match="bug"):
        fail()

    assert admission.held == 0
    assert telemetry.registry.get_sample_value("spanwise_in_flight_bytes") == 0
