"""What a sender is told, alike over gRPC and HTTP, of spans and of log records: rows G6 to G14, G20, G23 to G26."""

import asyncio
from dataclasses import dataclass
from typing import Literal

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collector.base.errors import LogFull, LogUnavailable, RecordTooLarge
from collector.otlp.scan import scan
from collector.otlp.signal import LOGS_SERVICE, METRICS_SERVICE, TRACE_SERVICE, OtlpService
from collector.otlp.split import split_by_trace
from tests.support.linked_logs import claude
from tests.support.linked_logs import request as log_request
from tests.support.otlp import PROTOBUF, body, post, span, trace_id
from tests.support.receiving import Served, assert_refused, export, serving
from tests.support.table import for_each

TOLD = {
    grpc.StatusCode.OK: "ok",
    grpc.StatusCode.UNAVAILABLE: "retry",
    grpc.StatusCode.INVALID_ARGUMENT: "invalid",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "too large",
    grpc.StatusCode.UNAUTHENTICATED: "who?",
    200: "ok",
    503: "retry",
    400: "invalid",
    413: "too large",
    401: "who?",
}


@dataclass(frozen=True)
class Told:
    """What the sender hears; `answer` is empty where nothing is wrong."""

    verdict: str
    answer: bytes = b""

    @property
    def rejected(self) -> tuple[int, str]:
        """Of traces; those of log records and metrics have the same form."""
        said = ExportTraceServiceResponse.FromString(self.answer).partial_success
        return said.rejected_spans, said.error_message


OK, RETRY = Told("ok"), Told("retry")


@dataclass(frozen=True)
class Way:
    """A transport, and what is sent over it."""

    transport: Literal["grpc", "http"]
    service: OtlpService = TRACE_SERVICE

    async def tell(self, served: Served, sent: bytes | None = None, token: str = "") -> Told:
        sent = self.items("one") if sent is None else sent
        bearer = {"authorization": token} if token else {}
        if self.transport == "grpc":
            method = self.service.method
            said = await export(served.target, sent, method=method, metadata=bearer.items())
            if said.code is grpc.StatusCode.UNAVAILABLE:
                assert_refused(said)
            return Told(TOLD[said.code], said.body)
        url = served.url.replace(TRACE_SERVICE.path, self.service.path)
        reply = await post(url, sent, PROTOBUF | bearer)
        if reply.status_code == 503:
            assert 1 <= int(reply.headers["retry-after"]) <= 4
        assert (reply.headers.get("www-authenticate") == "Bearer") == (reply.status_code == 401)
        return Told(TOLD[reply.status_code], reply.content if reply.status_code == 200 else b"")

    def items(self, *texts: str) -> bytes:
        """A span, or a record of a session of Claude Code, of each text."""
        if self.service is TRACE_SERVICE:
            return body(*[span(1, n, text=text) for n, text in enumerate(texts, 1)])
        records = [claude(n, "user_prompt", n, prompt=text) for n, text in enumerate(texts, 1)]
        return log_request(records)

    def count(self, served: Served, result: str) -> float:
        """Items that were received."""
        kind = "spans" if self.service is TRACE_SERVICE else "log_records"
        return served.counted(f"{kind}_received_total", transport=self.transport, result=result)


def held(served: Served) -> int:
    """Spans in the log, those of log records too."""
    traces = [scan(each.value).traces for each in served.log.written]
    return sum(len(spans) for each in traces for spans in each.values())


both = pytest.mark.parametrize("way", [Way("grpc"), Way("http")], ids=["grpc", "http"])
every = pytest.mark.parametrize(
    "way",
    [Way(each, of) for each in ("grpc", "http") for of in (TRACE_SERVICE, LOGS_SERVICE)],
    ids=lambda way: f"{way.transport} {way.service.path}",
)


@every
async def test_ok_is_said_only_after_the_log_has_it_and_without_partial_success(way: Way) -> None:
    """G6, H6."""
    async with serving() as served:
        async with served.holding(way.tell(served, way.items("one", "two"))) as (answer,):
            assert not answer.done()
            assert way.count(served, "accepted") == 0

        assert answer.result() == OK
        assert (way.count(served, "accepted"), held(served)) == (2, 2)


@every
async def test_an_empty_request_is_a_success_and_counts_nothing(way: Way) -> None:
    """G7: 0 bytes; an envelope without spans."""
    async with serving() as served:
        for empty in (b"", way.items(), b"\x0a\x00"):
            assert await way.tell(served, empty) == OK

        assert served.log.written == []
        assert way.count(served, "accepted") == 0


@every
async def test_what_cannot_be_decoded_is_invalid(way: Way) -> None:
    """G13, H7."""
    async with serving() as served:
        assert await way.tell(served, b"\xff\xff\xff\xff") == Told("invalid")
        assert served.log.written == []


@every
@for_each(
    ("fault", "verdict"),
    [
        (LogFull("full"), "retry"),
        (LogUnavailable("away"), "retry"),
        (RuntimeError("bug"), "retry"),
        (KeyError("bug"), "retry"),
        (OSError("disk"), "retry"),
        (MemoryError(), "retry"),
        (TimeoutError(), "retry"),
        (RecordTooLarge("big"), "too large"),
    ],
)
async def test_each_fault_of_the_log_has_its_answer(
    way: Way, fault: Exception, verdict: str
) -> None:
    """G12, G14, H8: what a client would throw away is said of nothing that fits later."""
    async with serving() as served:
        served.log.fails = fault

        assert await way.tell(served, way.items("one", "two")) == Told(verdict)
        assert way.count(served, "refused") == 2 * (verdict == "retry")
        assert way.count(served, "accepted") == 0


@both
async def test_a_refusal_is_never_a_partial_success(way: Way) -> None:
    """G10: clients must not retry after partial success, so overload is an error, bad spans or not."""
    async with serving() as served:
        served.log.fails = LogFull("full")

        assert await way.tell(served, body(span(1, 1), span(bytes(16), 2))) == RETRY
        assert way.count(served, "refused") == 2


@both
async def test_good_spans_are_kept_and_bad_ones_counted_exactly(way: Way) -> None:
    """G8, H6: one good, one zero id, one id of 3 bytes."""
    async with serving() as served:
        told = await way.tell(served, body(span(1, 1), span(bytes(16), 2), span(1, b"abc")))

        count, message = told.rejected
        assert (told.verdict, count) == ("ok", 2)
        assert "span_id has 3 bytes, not 8" in message
        assert served.log.spans() == [span(1, 1)]
        assert (way.count(served, "accepted"), way.count(served, "invalid")) == (1, 2)


@every
async def test_an_item_above_its_limit_is_rejected_alone(way: Way) -> None:
    """G8: windows.trace.max_bytes holds for a single span too."""
    async with serving(max_item=10_000) as served:
        told = await way.tell(served, way.items("one", "x" * 20_000))

        assert (told.verdict, told.rejected[0], held(served)) == ("ok", 1, 1)
        assert way.count(served, "too_large") == 1


@both
async def test_a_log_record_that_is_no_message_is_rejected_alone(way: Way) -> None:
    logs = Way(way.transport, LOGS_SERVICE)
    sent = logs.items("one", "two")
    (group,) = ExportLogsServiceRequest.FromString(sent).resource_logs
    bad = group.scope_logs[1].log_records[0].SerializeToString()
    async with serving() as served:
        told = await logs.tell(served, sent.replace(bad, b"\xff" * len(bad)))

        count, message = told.rejected
        assert (told.verdict, count, held(served)) == ("ok", 1, 1)
        assert "a log record is not a valid message" in message
        assert logs.count(served, "invalid") == 1


MARK = "half-an-emoji"
"""Stands for the damaged text while a request is made."""


@every
@for_each(
    "text",
    [
        b"\xed\xa0\xbd12345678",  # a surrogate as UTF-8 bytes
        b"\xff\xfe1234567890",  # bytes that never occur
        b"12345678901\xf0\x9f",  # a sequence that was cut
        b"\xc0\xaf12345678901",  # an overlong one
    ],
)
async def test_a_text_that_is_not_unicode_costs_its_characters_and_nothing_else(
    way: Way, text: bytes
) -> None:
    """G20."""
    sent = way.items("good", MARK, "also good").replace(MARK.encode(), text.ljust(len(MARK), b"."))
    async with serving() as served:
        assert await way.tell(served, sent) == OK

        assert (way.count(served, "accepted"), held(served)) == (3, 3)
        kept = b"".join(each.value for each in served.log.written).decode(errors="surrogateescape")
        assert "\ufffd" in kept
        assert "good" in kept
        repaired = served.counted("strings_repaired_total", transport=way.transport)
        assert repaired == 1


async def test_every_place_of_a_string_is_repaired() -> None:
    request = ExportTraceServiceRequest.FromString(body(span()))
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    (made,) = scope.spans
    resource.resource.attributes[0].value.string_value = scope.scope.name = MARK
    made.name = made.trace_state = made.attributes.add(key="a").key = MARK
    inner = made.attributes.add(key="list").value.array_value.values.add()
    inner.kvlist_value.values.add(key="k").value.string_value = MARK
    sent = request.SerializeToString().replace(MARK.encode(), MARK.encode()[:-2] + b"\xed\xa0")
    async with serving() as served:
        assert await Way("http").tell(served, sent) == OK

        assert served.counted("strings_repaired_total", transport="http") == 6
        (kept,) = served.log.requests()
        assert str(kept).count(MARK[:-2]) == 6


@both
async def test_a_large_request_is_repaired_too(way: Way) -> None:
    """Above 1 MiB a request is checked span by span, in a thread."""
    sent = way.items("nee?le", "x" * (2 << 20)).replace(b"nee?le", b"nee\xffle")
    async with serving(max_item=4 << 20) as served:
        assert await way.tell(served, sent) == OK

        assert way.count(served, "accepted") == 2
        assert served.log.spans()[0].attributes[0].value.string_value == "nee\ufffdle"


@both
async def test_what_is_in_flight_finishes_and_new_requests_come_back_later(way: Way) -> None:
    """G23."""
    async with serving() as served:
        async with served.holding(way.tell(served, body(span(1, 1)))) as (early,):
            served.receiver.stop_accepting()
            refused = await way.tell(served, body(span(1, 2)))
            stopping = asyncio.create_task(served.receiver.stop(5))
        await stopping

        assert (early.result(), refused) == (OK, RETRY)
        assert served.log.spans() == [span(1, 1)]


@both
async def test_a_repeated_request_is_accepted_again(way: Way) -> None:
    """G24: duplicates come of retries; they are distinguished by (trace id, span id) behind the log."""
    async with serving() as served:
        assert {await way.tell(served), await way.tell(served)} == {OK}
        assert held(served) == 2


@every
async def test_any_of_the_tokens_is_accepted_and_nothing_else(way: Way) -> None:
    """G26: none, a wrong one or another scheme is not."""
    headers = ("Bearer one", "bearer two", "Bearer three", "Basic one", "")
    async with serving(bearer_tokens=("one", "two")) as served:
        told = [(await way.tell(served, token=each)).verdict for each in headers]

        assert told == ["ok", "ok", "who?", "who?", "who?"]
        assert held(served) == 2
        assert way.count(served, "unauthenticated") == 3


@both
async def test_metrics_are_answered_ok_and_dropped_unread_and_need_the_token(way: Way) -> None:
    """G25: an endpoint for the whole process makes no errors; the log gets nothing."""
    metrics = Way(way.transport, METRICS_SERVICE)
    async with serving(bearer_tokens=("one",)) as served:
        told = await metrics.tell(served, b"\xff no metrics \xff", token="Bearer one")
        without = await metrics.tell(served, b"")

        assert (told, without) == (OK, Told("who?"))
        assert served.dropped(way.transport) == 1
        assert served.log.written == []


@both
async def test_a_request_of_several_traces_is_one_record_where_the_log_takes_joined_ones(
    way: Way,
) -> None:
    several, one = body(span(1, 1), span(2, 2), span(1, 3)), body(span(1, 1), span(1, 2))
    async with serving(joined=1 << 20) as served:
        assert [await way.tell(served, each) for each in (several, one)] == [OK, OK]

    pieces = split_by_trace(several, max_item=1 << 20).pieces
    joined = b"".join(each.value for each in pieces)
    assert [each.value for each in served.log.written] == [joined, one]
    assert list(scan(joined).traces) == [trace_id(1), trace_id(2)]
