"""A score of others or a log record at the edge of its types costs no other one of its request."""

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.config.tree import Config
from collector.records.feedback import FeedbackRules
from tests.support.documented_edges import TIMES, TRACE
from tests.support.otlp_http import JSON, post
from tests.support.receiving import serving

HALF = json.loads('"\\ud83d"')
TEXTS: tuple[Any, ...] = ("tone", "", "x" * 70_000, "a\0b", HALF, "\u202e", 1, None, [], {})
FIELDS: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("trace_id", "session_id", "span_id"), (TRACE, *TEXTS)),
    **dict.fromkeys(("service", "name", "label", "explanation", "version", "id"), TEXTS),
    "scope": ("session", "trace", *TEXTS),
    "value": (True, 0.5, -1, 1e308, 10**400, "0.5", None, [], {}),
    "scale": ({"min": 1, "max": 5}, {"min": 1, "max": 1}, {"min": "x"}, [], None, 3),
    "time": (*TIMES, *TEXTS),
}
"""Of every field that docs/external-evaluators.md names."""
ITEM = {"trace_id": TRACE, "name": "tone", "value": True}


async def test_each_field_of_a_score_at_its_edges_is_taken_or_refused_alone() -> None:
    edges = [{**ITEM, name: edge} for name, found in FIELDS.items() for edge in found]
    edges += [{n: found[turn % len(found)] for n, found in FIELDS.items()} for turn in range(12)]
    async with serving(feedback=FeedbackRules.of(Config())) as served:
        url = served.url.replace("/v1/traces", "/v1/evaluations")
        for item in edges:
            sent = json.dumps({"evaluations": [ITEM, item, {**ITEM, "id": "last"}]})
            reply = await post(url, sent.encode(), JSON)
            assert reply.status_code == 200, (str(item)[:300], reply.text[:300])
            told = reply.json()
            refused = [each["index"] for each in told["rejected"]]
            assert told["accepted"] + len(refused) == 3
            assert refused in ([], [1]), (str(item)[:300], reply.text[:300])
            assert all(each["message"] for each in told["rejected"])


async def test_a_log_record_without_a_whole_trace_id_costs_no_other() -> None:
    made = ExportLogsServiceRequest()
    scope = made.resource_logs.add().scope_logs.add()
    for trace_id in (b"\1" * 16, b"short", b"", b"\2" * 16):
        record = scope.log_records.add(trace_id=trace_id, event_name="gen_ai.user.message")
        record.body.string_value = "hello"
    async with serving() as served:
        url = served.url.replace("/v1/traces", "/v1/logs")
        reply = await post(url, made.SerializeToString())

        assert reply.status_code == 200, reply.text
        labels = {"transport": "http", "result": "accepted"}
        name = "spanwise_log_records_received_total"
        assert served.telemetry.registry.get_sample_value(name, labels) == 4
