"""Whatever stands in `spans`, the backend under `forward` gets what was sent: the same records, the same spans."""

from pathlib import Path

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.repair import DecodedRequest
from collector.otlp.sent_form import as_sent, unread_record
from collector.otlp.signal import OtlpSignal
from collector.receiver.splitter import Splitter
from collector.records.otlp_signals import LOGS, TRACES
from collector.service import recordings
from tests.support.otlp import body, span
from tests.support.table import for_each

CAPTURES = Path(__file__).parents[2] / "data" / "captures_logs"
RECORDED = sorted(
    {(each.parent, "logs" in each.name): each for each in CAPTURES.rglob("*.otlp")}.values()
)
"""One of each agent."""


def items(request: Message) -> list[tuple[bytes, bytes, bytes]]:
    """Every span or record with its resource and its scope, sorted: their order in a request says nothing."""
    found: list[tuple[bytes, bytes, bytes]] = []
    for _, groups in request.ListFields():
        for group in groups:
            for scope in getattr(group, "scope_spans", None) or getattr(group, "scope_logs", ()):
                found += [
                    (
                        group.resource.SerializeToString(deterministic=True),
                        scope.scope.SerializeToString(deterministic=True)
                        + scope.schema_url.encode(),
                        each.SerializeToString(deterministic=True),
                    )
                    for each in getattr(scope, "spans", None) or getattr(scope, "log_records", ())
                ]
    return sorted(found)


@for_each("joined", [0, 1 << 20])
@for_each("path", RECORDED)
def test_what_was_recorded_is_sent_on_as_it_came(path: Path, joined: int) -> None:
    signal: OtlpSignal = LOGS if path.name.endswith(".logs.otlp") else TRACES
    for request in recordings.requests(path):
        splitter = Splitter(max_item=1 << 24, joined=joined, keeps_unread=True)
        split, said = splitter.split(DecodedRequest(request), signal)
        written = [each.value for each in split.pieces]
        written += [each.value for each in said.records if isinstance(each.value, bytes)]
        spans, records = ExportTraceServiceRequest(), ExportLogsServiceRequest()
        for value in written:
            sent = as_sent(value)
            spans.MergeFromString(sent.spans)
            records.MergeFromString(sent.log_records)
        mine, other = (records, spans) if signal is LOGS else (spans, records)

        assert items(mine) == items(signal.request.FromString(request))
        assert items(other) == []


def test_spans_of_no_such_agent_are_not_parsed() -> None:
    value = body(span())

    assert as_sent(value).spans is value


@pytest.mark.parametrize("form", [b"r\xff", b"s\xff", b"r", b""])
def test_a_field_of_the_senders_own_ends_nothing(form: bytes) -> None:
    mine = Span()
    mine.MergeFromString(
        unread_record(b"")[:3] + bytes([14 + len(form)]) + b"spanwise.sent:" + form
    )
    mine.MergeFrom(span())
    value = body(mine)

    assert as_sent(value).spans == value
