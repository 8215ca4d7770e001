"""Where requests are split, and how often its own faults are logged."""

import threading
from dataclasses import replace

import pytest

from collector.base.clock import wall
from collector.otlp.split import SplitRequest
from collector.otlp.split_logs import split_logs
from collector.receiver.answers import Code
from collector.receiver.inflate import identity, protobuf
from collector.records.otlp_signals import LOGS
from tests.support.linked_logs import prompts, request
from tests.support.received_log import ReceivedLog
from tests.support.receiving import intake

_PLAIN = protobuf(identity)


@pytest.mark.parametrize(("records", "is_off_the_loop"), [(10, False), (400, True)])
async def test_many_records_are_split_off_the_loop(records: int, *, is_off_the_loop: bool) -> None:
    """Every log record is decoded, so a few hundred of them would hold the loop."""
    threads: list[int] = []

    def split(request: bytes, *, max_item: int, joined: int = 0) -> SplitRequest:
        threads.append(threading.get_ident())
        return split_logs(request, max_item=max_item, joined=joined)

    log = ReceivedLog()
    signal = replace(LOGS, split=split)
    sent = request(prompts(records))

    room = intake(log, clock=wall)
    await room.take(sent, signal=signal, transport="grpc", sender="", decode=_PLAIN)

    assert [each != threading.get_ident() for each in threads] == [is_off_the_loop]
    assert len(log.written) == records // 2, "one for each turn"


async def test_own_faults_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the clock does: one that was set back an hour does not hide them for an hour."""
    now = 0.0
    room = intake(clock=lambda: now)

    def split(request: bytes, **settings: object) -> SplitRequest:
        raise RuntimeError

    for now, lines in ((7200.0, 1), (7259.0, 1), (7260.0, 2), (3600.0, 3), (3659.0, 3)):
        answer = await room.take(
            b"", signal=replace(LOGS, split=split), transport="grpc", sender="", decode=_PLAIN
        )
        assert (answer.code, len(caplog.records)) == (Code.UNAVAILABLE, lines), now
