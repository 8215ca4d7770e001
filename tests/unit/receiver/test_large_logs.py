"""Where requests of log records are split: every record is decoded, so a few hundred of them would hold the loop."""

import threading
from dataclasses import replace

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.otlp.split import SplitRequest
from collector.otlp.split_logs import split_logs
from collector.receiver.families import ReceiverFamilies
from collector.receiver.inflate import identity, protobuf
from collector.receiver.intake import Intake
from collector.records.otlp_signals import LOGS
from tests.support.linked_logs import prompts, request
from tests.support.received_log import ReceivedLog


@pytest.mark.parametrize(("records", "is_off_the_loop"), [(10, False), (400, True)])
async def test_many_records_are_split_off_the_loop(records: int, *, is_off_the_loop: bool) -> None:
    threads: list[int] = []

    def split(request: bytes, *, max_item: int, strict: bool = True) -> SplitRequest:
        threads.append(threading.get_ident())
        return split_logs(request, max_item=max_item, strict=strict)

    log = ReceivedLog()
    intake = Intake(
        log=log,
        max_request=1 << 20,
        max_item=1 << 20,
        families=ReceiverFamilies(Telemetry()),
        clock=wall,
    )
    signal = replace(LOGS, split=split)
    sent = request(prompts(records))

    await intake.take(sent, signal=signal, transport="grpc", sender="", decode=protobuf(identity))

    assert [each != threading.get_ident() for each in threads] == [is_off_the_loop]
    assert len(log.written) == records // 2, "one for each turn"
