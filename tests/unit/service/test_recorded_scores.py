"""Scores of others within recordings: signals of `spanwise evaluate` and of the library, beside ours."""

import json
from pathlib import Path

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import spanwise
from collector.base.frames import pack_frame
from collector.commands.cli import main
from tests.support.agents import Turn, request, spans, trace_id
from tests.support.dialect_spans import key_values

EVALUATION = "gen_ai.evaluation.result"


def recording(folder: Path) -> Path:
    turn = Turn(service="shop", session="s-1", number=0)
    made = ExportTraceServiceRequest.FromString(request("shop", spans(turn)))
    span = made.resource_spans[0].scope_spans[0].spans[0]
    for name, value in (("Tone", 0.2), ("Tone", 0.7), ("coherence", 7.0)):
        event = span.events.add(name=EVALUATION, time_unix_nano=span.end_time_unix_nano)
        fields = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
        event.attributes.extend(key_values(fields))
        event.time_unix_nano += int(10 * value)
    score = (
        made.resource_spans[0]
        .scope_spans[0]
        .spans.add(trace_id=bytes(range(1, 17)), span_id=bytes(range(1, 9)), name="evaluator Help")
    )
    score.links.add(trace_id=trace_id(turn), span_id=span.span_id)
    score.attributes.extend(
        key_values({"gen_ai.evaluation.name": "Help", "gen_ai.evaluation.score.value": "0.5"})
    )
    path = folder / "run.otlp"
    path.write_bytes(pack_frame(made.SerializeToString()))
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add(event_name=EVALUATION)
    record.trace_id, record.span_id = trace_id(turn), span.span_id
    fields = {"gen_ai.evaluation.name": "of a record", "gen_ai.evaluation.score.value": 0.9}
    record.attributes.extend(key_values(fields))
    (folder / "run.logs.otlp").write_bytes(pack_frame(logs.SerializeToString()))
    return folder


def test_they_are_signals_beside_ours(tmp_path: Path) -> None:
    scores = spanwise.evaluate(recording(tmp_path))

    found = {each["evaluator"]: each for each in scores if each["method"] == "external"}
    assert {name: each["score"] for name, each in found.items()} == {
        "tone": 0.7,
        "x_coherence": None,
        "help": 0.5,
        "of_a_record": 0.9,
    }
    assert found["x_coherence"]["error"]["type"] == "out_of_scale"
    assert {(each["session_id"], each["agent"]) for each in found.values()} == {("s-1", "support")}
    assert any(each["method"] != "external" for each in scores)


def test_the_cli_gives_the_same(tmp_path: Path) -> None:
    folder = recording(tmp_path)
    output = tmp_path / "signals.jsonl"
    assert main(["evaluate", str(folder), "--format", "jsonl", "--output", str(output)]) == 0

    signals = map(json.loads, output.read_text().splitlines())
    shown = {each["id"] for each in signals if each["method"] == "external"}
    scores = spanwise.evaluate(folder)
    assert shown == {each["id"] for each in scores if each["method"] == "external"}
    assert len(shown) == 4
