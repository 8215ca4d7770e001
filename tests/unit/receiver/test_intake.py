"""Where requests are inflated, redacted and split, within which bounds, and how often its own faults are logged."""

import gzip
import threading
import tracemalloc
import zlib
from dataclasses import replace

import pytest
import zstandard
from google.protobuf.message import Message

from collector.base.clock import wall
from collector.base.errors import TooLarge, Undecodable
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.otlp.marking import Marking
from collector.otlp.redaction import Redact, RedactionSettings, redactor
from collector.otlp.repair import DecodedRequest
from collector.otlp.split import SplitRequest
from collector.otlp.split_logs import split_logs
from collector.receiver.answers import Code
from collector.receiver.inflate import BY_NAME, identity, protobuf, sniff
from collector.receiver.intake import LARGE_TO_REDACT
from collector.receiver.splitter import Splitter
from collector.records.otlp_signals import LOGS, TRACES
from tests.support.counted import counted
from tests.support.linked_logs import prompts, request
from tests.support.otlp import body, span
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


COMPRESS = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
MIB = 1 << 20


@pytest.mark.parametrize("name", COMPRESS)
def test_exactly_the_limit_is_allowed_and_one_more_is_not(name: str) -> None:
    packed = COMPRESS[name](bytes(1000))

    assert BY_NAME[name](packed, 1000) == bytes(1000)
    with pytest.raises(TooLarge):
        BY_NAME[name](packed, 999)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_bomb_costs_no_more_than_the_limit(name: str) -> None:
    bomb = COMPRESS[name](bytes(300 * MIB))
    tracemalloc.start()

    with pytest.raises(TooLarge):
        BY_NAME[name](bomb, MIB)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * MIB


def test_a_bomb_of_many_gzip_members_is_refused() -> None:
    with pytest.raises(Undecodable, match="more than 64 gzip members"):
        BY_NAME["gzip"](gzip.compress(b"") * 65, MIB)


def test_grpc_messages_are_distinguished_by_their_first_bytes() -> None:
    plain = b"\x0a\x00"

    assert sniff(gzip.compress(plain), MIB) == plain
    assert sniff(zlib.compress(plain), MIB) == plain
    assert sniff(plain, MIB) == plain
    looks_like_zlib = b"\x78\x9c\x01"  # and is an unknown field
    assert sniff(looks_like_zlib, MIB) == looks_like_zlib
    assert sniff(b"", MIB) == b""


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_body_that_is_cut_off_is_undecodable(name: str, cut: int) -> None:
    packed = COMPRESS[name](b"abcdefgh" * 50)

    with pytest.raises(Undecodable):
        BY_NAME[name](packed[:-cut], MIB)
