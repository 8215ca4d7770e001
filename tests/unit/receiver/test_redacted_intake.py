"""Where requests are redacted: before the log, off the loop when large, never without patterns."""

import threading

import pytest
from google.protobuf.message import Message

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.otlp.marking import Marking
from collector.otlp.redaction import Redact, RedactionSettings, redactor
from collector.otlp.repair import DecodedRequest
from collector.receiver.inflate import identity, protobuf
from collector.receiver.intake import LARGE_TO_REDACT
from collector.receiver.splitter import Splitter
from collector.records.otlp_signals import TRACES
from tests.support.counted import counted
from tests.support.otlp import body, span
from tests.support.received_log import ReceivedLog
from tests.support.receiving import intake

SENT = body(span(1, 1, text="jane@example.org"))


async def take(sent: bytes, redact: Redact | None) -> tuple[ReceivedLog, Telemetry]:
    log, telemetry = ReceivedLog(), Telemetry()
    room = intake(log, telemetry, splitter=Splitter(max_item=1 << 20, redact=redact), clock=wall)
    await room.take(sent, signal=TRACES, transport="grpc", sender="", decode=protobuf(identity))
    return log, telemetry


def with_patterns() -> Redact:
    config = Config.model_validate({"redaction": {"patterns": {"mail": "email"}}})
    made = redactor(RedactionSettings.of(config))
    assert made is not None
    return made


async def test_the_log_gets_markers_and_the_texts_are_counted() -> None:
    log, telemetry = await take(SENT, with_patterns())

    assert log.spans()[0].attributes[0].value.string_value == "[mail]"
    for how, count in (("marked", 1), ("whole", 0)):
        name = "strings_redacted_total"
        assert counted(telemetry, name, transport="grpc", how=how) == count


async def test_without_patterns_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("looked at without patterns")

    monkeypatch.setattr(Marking, "may_match", fail)
    monkeypatch.setattr(Marking, "text", fail)
    log, _ = await take(SENT, redactor(RedactionSettings.of(Config())))

    assert log.written[0].value is SENT


@pytest.mark.parametrize("is_large", [False, True])
async def test_large_requests_are_redacted_off_the_loop(*, is_large: bool) -> None:
    threads: list[int] = []

    def note(decoded: DecodedRequest, message: type[Message]) -> DecodedRequest:
        del message
        threads.append(threading.get_ident())
        return decoded

    await take(body(span(1, 1, text="x" * LARGE_TO_REDACT)) if is_large else SENT, note)

    assert [each != threading.get_ident() for each in threads] == [is_large]
