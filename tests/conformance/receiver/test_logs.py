"""What of log records alone holds; what they share with spans: test_both_transports.py."""

import gzip
import json

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.otlp.scan import scan
from collector.otlp.signal import LOGS_SERVICE
from tests.support.hostile import field_of
from tests.support.linked_logs import Said, claude, request
from tests.support.otlp import JSON, PROTOBUF, post
from tests.support.receiving import exported, serving
from tests.support.table import for_each

PROMPT = claude(1, "user_prompt", 1, prompt="hello")
SCORE = Said(
    1,
    {"event.name": "gen_ai.evaluation.result", "gen_ai.evaluation.name": "toxicity"},
    trace_id=b"t" * 16,
    span_id=b"s" * 8,
)


@for_each(
    ("records", "reason", "kept"),
    [
        ([claude(1, "plugin_loaded", 1), PROMPT], "diagnostics", 1),
        ([PROMPT._replace(scope="httpx", attributes={})], "no_agent", 0),
        ([SCORE._replace(scope="spanwise")], "own", 0),  # as `sinks.otlp` sends them
        ([SCORE._replace(scope="ragas")], "evaluation", 0),
    ],
)
async def test_records_of_no_turn_are_taken_and_dropped_by_why(
    records: list[Said], reason: str, kept: int
) -> None:
    """A score is no news of the trace that it is about."""
    said, served = await exported(request(records), method=LOGS_SERVICE.method)

    assert said.code is grpc.StatusCode.OK
    assert len(served.log.written) == kept
    assert served.counted("log_records_dropped_total", reason=reason) == 1
    labels = {"transport": "grpc", "result": "accepted"}
    assert served.counted("log_records_received_total", **labels) == len(records)


async def test_records_come_as_json_and_compressed() -> None:
    sent = request([PROMPT])
    document = MessageToDict(ExportLogsServiceRequest.FromString(sent))
    (record,) = document["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    record |= {"traceId": PROMPT.trace_id.hex(), "spanId": PROMPT.span_id.hex()}
    async with serving() as served:
        url = served.url.replace("/v1/traces", LOGS_SERVICE.path)
        text = await post(url, json.dumps(document).encode(), JSON)
        packed = await post(url, gzip.compress(sent), PROTOBUF | {"content-encoding": "gzip"})

    assert (text.status_code, packed.status_code) == (200, 200)
    first, second = (list(scan(each.value).traces.values()) for each in served.log.written)
    assert first == second, "the same spans, however they were sent"


async def test_a_million_tiny_records_are_refused_before_anything_is_made_of_them() -> None:
    sent = field_of(1, field_of(2, b"\x12\x00" * 1_100_000))
    said, served = await exported(sent, method=LOGS_SERVICE.method)

    assert said.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert served.log.written == []
