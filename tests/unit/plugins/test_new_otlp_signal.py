"""A new OTLP signal is one file with its `OtlpSignal`, and one line in `OTLP_SIGNALS`."""

import pkgutil
from importlib import import_module
from pathlib import Path

import grpc
import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

import collector.records
from collector.base.frames import pack_frame
from collector.config.tree import Config
from collector.log.port import SPANS
from collector.otlp.signal import OtlpService, OtlpSignal
from collector.otlp.split import Piece, SplitRequest
from collector.records.otlp_signals import OTLP_SIGNALS
from collector.service import recordings
from collector.service.recorded_traces import read_recordings
from tests.support.otlp import JSON, body, post, span
from tests.support.receiving import export, serving

# --- the file that is added: collector/records/otlp_events.py --------------------------------------------------------


def split_events(request: bytes, *, max_item: int, joined: int = 0) -> SplitRequest:
    """One piece for each record; events without a name are rejected."""
    del max_item, joined
    split = SplitRequest()
    for resource in ExportLogsServiceRequest.FromString(request).resource_logs:
        records = [each for scope in resource.scope_logs for each in scope.log_records]
        named = [each for each in records if each.event_name]
        split.accepted += len(named)
        split.invalid += len(records) - len(named)
        split.reasons += ["no event name"] * (len(named) < len(records))
        split.pieces += [Piece(each.trace_id, each.SerializeToString()) for each in named]
    return split


def response(rejected: int, message: str) -> ExportLogsServiceResponse:
    made = ExportLogsServiceResponse()
    if rejected:
        made.partial_success.rejected_log_records = rejected
        made.partial_success.error_message = message
    return made


EVENTS_SERVICE = OtlpService(name="example.v1.EventsOfThisTest", path="/v1/events_of_this_test")

EVENTS = OtlpSignal(
    items="events_of_this_test",
    service=EVENTS_SERVICE,
    request=ExportLogsServiceRequest,
    response=response,
    split=split_events,
    topic=SPANS,
    recordings=(".events_of_this_test.otlp", ".events_of_this_test.otlp.gz"),
)

# --- with its line ---------------------------------------------------------------------------------------------------

WITH_ITS_LINE = (*OTLP_SIGNALS, EVENTS)


def events(*names: str) -> ExportLogsServiceRequest:
    made = ExportLogsServiceRequest()
    scope = made.resource_logs.add().scope_logs.add()
    for name in names:
        scope.log_records.add(event_name=name, trace_id=bytes(15) + b"\x01")
    return made


async def test_it_is_served_beside_traces_over_grpc_and_over_http_in_both_encodings() -> None:
    async with serving(signals=WITH_ITS_LINE) as served:
        said = events("a", "").SerializeToString()
        taken = await export(served.target, said, method=EVENTS_SERVICE.method)
        traces = await export(served.target, body(span()))
        url = served.url.replace("/v1/traces", EVENTS_SERVICE.path)
        binary = await post(url, events("b").SerializeToString())
        text = await post(url, MessageToJson(events("c")).encode(), JSON)

    answer = ExportLogsServiceResponse.FromString(taken.body).partial_success
    assert taken.code is traces.code is grpc.StatusCode.OK
    assert answer.rejected_log_records == 1
    assert answer.error_message == "1 events_of_this_test rejected: no event name"
    assert (binary.status_code, text.status_code) == (200, 200)
    assert [each.key for each in served.log.written[:2]] == [bytes(15) + b"\x01"] * 2
    assert len(served.log.written) == 4
    labels = {"transport": "grpc", "result": "accepted"}
    counted = served.telemetry.registry.get_sample_value
    assert counted("spanwise_events_of_this_test_received_total", labels) == 1
    assert served.count("grpc", "accepted") == 1


def test_its_recordings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        recordings, "_SIGNALS", recordings._SIGNALS | dict.fromkeys(EVENTS.recordings, EVENTS)
    )
    file = tmp_path / "recorded.events_of_this_test.otlp"
    file.write_bytes(pack_frame(events("").SerializeToString()))

    found = recordings.find([tmp_path])
    with read_recordings(Config(), found.files, lambda _: None) as read:
        assert (read.rejected, read.reasons) == (1, ["no event name"])

    assert (found.files, found.left_out) == ((file,), {})


async def test_without_its_line_it_is_refused_on_both_transports() -> None:
    given = events("a").SerializeToString()
    async with serving() as served:
        said = await export(served.target, given, method=EVENTS_SERVICE.method)
        reply = await post(served.url.replace("/v1/traces", EVENTS_SERVICE.path), given)

    assert said.code is grpc.StatusCode.UNIMPLEMENTED
    assert reply.status_code == 404


def signals_without_a_line(listed: tuple[OtlpSignal, ...]) -> list[str]:
    """Every `OtlpSignal` that a file of collector/records declares and the table does not hold."""
    modules = [
        import_module(each.name)
        for each in pkgutil.iter_modules(collector.records.__path__, "collector.records.")
    ]
    return sorted(
        value.items
        for module in modules
        for value in vars(module).values()
        if isinstance(value, OtlpSignal) and value not in listed
    )


def test_a_forgotten_line_fails_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert signals_without_a_line(OTLP_SIGNALS) == []

    monkeypatch.setattr("collector.records.otlp_signals.EVENTS", EVENTS, raising=False)

    assert signals_without_a_line(OTLP_SIGNALS) == ["events_of_this_test"]
    assert signals_without_a_line(WITH_ITS_LINE) == []
