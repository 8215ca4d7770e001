"""What senders are answered."""

import pytest

from collector.base.errors import LogFull, LogUnavailable
from collector.receiver.answers import (
    Code,
    HungUp,
    NoRoom,
    OverShare,
    SlowSender,
    Stopping,
    reason,
    refused,
)


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
