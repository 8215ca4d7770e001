"""Log records keep every rule of spans: what is taken is durable, what is damaged is lost alone and said."""

import gzip
import json

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from collector.base.errors import LogFull
from collector.otlp.scan import scan
from collector.otlp.signal import LOGS_SERVICE
from tests.support.hostile import field_of
from tests.support.otlp_http import JSON, PROTOBUF, post
from tests.support.receiving import Served, export, serving

SCOPE = "com.anthropic.claude_code.events"


def logs(*names: str, scope: str = SCOPE, text: str = "hello") -> ExportLogsServiceRequest:
    """Records of one session of Claude Code."""
    made = ExportLogsServiceRequest()
    group = made.resource_logs.add()
    group.resource.attributes.append(attribute("service.name", "claude-code"))
    records = group.scope_logs.add()
    records.scope.name = scope
    for number, name in enumerate(names, 1):
        records.log_records.add(
            time_unix_nano=number,
            attributes=[
                attribute("event.name", name),
                attribute("session.id", "s"),
                attribute("prompt.id", "p"),
                attribute("prompt", text),
            ],
        )
    return made


def attribute(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


async def send(served: Served, body: bytes, transport: str) -> tuple[bool, bytes]:
    """Whether it was taken, and the answer."""
    if transport == "grpc":
        said = await export(served.target, body, method=LOGS_SERVICE.method)
        return said.code is grpc.StatusCode.OK, said.body
    reply = await post(served.url.replace("/v1/traces", LOGS_SERVICE.path), body)
    return reply.status_code == 200, reply.content


both = pytest.mark.parametrize("transport", ["grpc", "http"])


@both
async def test_what_is_answered_ok_is_in_the_log(transport: str) -> None:
    async with serving() as served:
        taken, answer = await send(
            served, logs("user_prompt", "api_request").SerializeToString(), transport
        )

    assert taken
    assert ExportLogsServiceResponse.FromString(answer) == ExportLogsServiceResponse()
    (record,) = served.log.written
    (spans,) = scan(record.value).traces.values()
    assert len(spans) == 2
    assert served.counted("log_records_received_total", transport=transport, result="accepted") == 2


@both
async def test_records_of_no_agent_are_taken_and_dropped_by_why(transport: str) -> None:
    async with serving() as served:
        diagnostics = logs("plugin_loaded", "user_prompt")
        taken, _ = await send(served, diagnostics.SerializeToString(), transport)
        plain, _ = await send(served, logs("", scope="httpx").SerializeToString(), transport)

    assert (taken, plain) == (True, True)
    assert len(served.log.written) == 1
    assert served.counted("log_records_dropped_total", reason="diagnostics") == 1
    assert served.counted("log_records_dropped_total", reason="no_agent") == 1
    assert served.counted("log_records_received_total", transport=transport, result="accepted") == 3


def scores(scope: str) -> bytes:
    """A score of the trace's only span, as `sinks.otlp` and other evaluators send it."""
    made = ExportLogsServiceRequest()
    group = made.resource_logs.add().scope_logs.add()
    group.scope.name = scope
    group.log_records.add(
        time_unix_nano=1,
        event_name="gen_ai.evaluation.result",
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        attributes=[attribute("gen_ai.evaluation.name", "toxicity")],
    )
    return made.SerializeToString()


@both
@pytest.mark.parametrize(("scope", "reason"), [("spanwise", "own"), ("ragas", "evaluation")])
async def test_a_score_is_no_news_of_the_trace_that_it_is_about(
    transport: str, scope: str, reason: str
) -> None:
    async with serving() as served:
        taken, _ = await send(served, scores(scope), transport)

    assert taken
    assert not served.log.written
    assert served.counted("log_records_dropped_total", reason=reason) == 1


@both
async def test_a_text_that_is_not_unicode_costs_its_characters_and_nothing_else(
    transport: str,
) -> None:
    body = logs("user_prompt", "api_request", text="cut Ä").SerializeToString()
    broken = body.replace("Ä".encode(), b"\xc3\x28")
    async with serving() as served:
        taken, answer = await send(served, broken, transport)

    assert taken
    assert ExportLogsServiceResponse.FromString(answer) == ExportLogsServiceResponse()
    (record,) = served.log.written
    assert "cut \N{REPLACEMENT CHARACTER}(".encode() in record.value


@both
@pytest.mark.parametrize("why", ["invalid", "too_large"])
async def test_a_record_that_is_no_message_or_too_large_is_rejected_alone(
    transport: str, why: str
) -> None:
    request = logs("user_prompt", "api_request")
    second = request.resource_logs[0].scope_logs[0].log_records[1]
    if why == "too_large":
        second.attributes.append(attribute("large", "x" * 20_000))
    sent = request.SerializeToString()
    if why == "invalid":
        whole = second.SerializeToString()
        sent = sent.replace(whole, b"\xff" * len(whole))
    async with serving(max_item=10_000) as served:
        taken, answer = await send(served, sent, transport)

    assert taken
    said = ExportLogsServiceResponse.FromString(answer).partial_success
    assert (said.rejected_log_records, len(served.log.written)) == (1, 1)
    assert why == "too_large" or "a log record is not a valid message" in said.error_message
    assert served.counted("log_records_received_total", transport=transport, result=why) == 1


@both
@pytest.mark.parametrize(
    ("sent", "is_full"),
    [(b"\xff\xff", False), (logs("user_prompt").SerializeToString(), True)],
    ids=["no request", "a full log"],
)
async def test_what_cannot_be_kept_is_refused(
    transport: str, sent: bytes, *, is_full: bool
) -> None:
    async with serving() as served:
        served.log.fails = LogFull("no room") if is_full else None
        taken, _ = await send(served, sent, transport)

    assert not taken
    assert served.log.written == []
    refused = served.counted("log_records_received_total", transport=transport, result="refused")
    assert refused == is_full


async def test_records_come_as_json_and_compressed() -> None:
    async with serving() as served:
        url = served.url.replace("/v1/traces", LOGS_SERVICE.path)
        request = logs("user_prompt")
        text = await post(url, json.dumps(MessageToDict(request)).encode(), JSON)
        packed = await post(
            url, gzip.compress(request.SerializeToString()), PROTOBUF | {"content-encoding": "gzip"}
        )

    assert (text.status_code, packed.status_code) == (200, 200)
    first, second = (list(scan(each.value).traces.values()) for each in served.log.written)
    assert first == second, "the same spans, however they were sent"


async def test_a_million_tiny_records_are_refused_before_anything_is_made_of_them() -> None:
    body = field_of(1, field_of(2, b"\x12\x00" * 1_100_000))
    async with serving() as served:
        taken, _ = await send(served, body, "grpc")

    assert not taken
    assert served.log.written == []
