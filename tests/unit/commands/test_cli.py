"""The command line: lazy, one clear line for each mistake, and the list of evaluators."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from collector.base.frames import pack_frame
from collector.commands import cli
from collector.doctor.connectivity import partitions_differ, too_small
from evaluators.registry import Registry
from tests.support.command import Run
from tests.support.otlp import body, span, trace_id
from tests.support.table import for_each


def test_print_shows_what_files_and_set_make(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("admin: {port: 5}")

    done = run("config", "print", "--config", file, "--set", "admin.host=::1")

    admin = yaml.safe_load(done.out)["admin"]
    assert (done.code, admin["port"], admin["host"]) == (0, 5, "::1")
    assert json.loads(run("config", "schema").out)["additionalProperties"] is False


def test_a_bad_configuration_is_one_line_per_field_and_exit_1(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("windows: {trace: {idle: three}}\nlgo: {}")

    done = run("validate", "--config", file)

    assert (done.code, done.out) == (1, "")
    fields = [line.partition(":")[0] for line in done.complaints]
    assert fields == ["windows.trace.idle", "lgo"]


@for_each(
    "arguments,code,says",
    [
        *((each, 2, "spanwise: ") for each in ("confg", "config", "config prnt")),
        *((each, 2, "spanwise: ") for each in ("validate --nope", "validate --config")),
        ("run spanwise.yaml", 2, "a configuration file goes behind --config"),
        ("validate --config /no/such.yaml", 1, "/no/such.yaml: no such file"),
        (
            "validate --connect --set log.kind=kafka --set log.kafka.bootstrap_servers=127.0.0.1:1",
            1,
            "log.kafka.bootstrap_servers: 127.0.0.1:1 does not answer",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments: str, code: int, says: str, run: Run) -> None:
    done = run(*arguments.split())

    done.assert_one_line(says)
    assert (done.code, done.out) == (code, "")


@pytest.mark.process
def test_help_and_version_import_neither_settings_nor_servers() -> None:
    script = (
        "import sys; from collector.commands.cli import main\n"
        "assert main(['--help']) == 0 and main(['--version']) == 0\n"
        "heavy = {'collector.config.tree', 'yaml', 'rich', 'starlette', 'grpc', 'aiokafka', 'numpy'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )

    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert (run.returncode, run.stderr) == (0, "")
    assert all(name in run.stdout for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("file", "text", "is_ours"),
    [
        ("top_level.txt", "x\ncollector\n", True),
        ("RECORD", "x/a.py,,\ncollector/base.py,sha256=a,1\n", True),
        ("RECORD", "collector.py,,\n", True),
        ("RECORD", "collectors/collector/a.py,,\nx/collector.py,,\n", False),
    ],
)
def test_another_distribution_with_our_packages_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, file: str, text: str, is_ours: bool
) -> None:
    folder = tmp_path / "another-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1\n")
    (folder / file).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    done = run("validate")

    says = "the distribution `another` also installs the package"
    assert (done.code, done.err.startswith(says)) == (is_ours, is_ours)


def test_evaluators_are_listed_as_table_and_json(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    chosen = {"task_completion", "latency"}
    found = Registry(spec for spec in Registry.discover() if spec.name in chosen)
    monkeypatch.setattr(Registry, "discover", lambda *_: found)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    rows = json.loads(run("evaluators", "--format", "json").out)
    table = run("evaluators").out.splitlines()

    assert [row["name"] for row in rows] == ["task_completion", "latency"]
    assert set(rows[0]) == {"name", "scope", "version", "method", "needs", "options", "doc"}
    assert table[0].split()[0] == "NAME"
    assert "llm_judge" in table[1]
    assert table[1].endswith("Whether the agent accomplished what the user asked for.")


def test_topics_that_do_not_fit_are_named() -> None:
    assert partitions_differ({"a": 3, "b": 3}) == []
    assert "a has 3, b has 4" in partitions_differ({"b": 4, "a": 3})[0]
    assert too_small({"a": 20 << 20}) == []
    assert "max.message.bytes" in too_small({"a": 1 << 20})[0]


@pytest.mark.parametrize("command", ["evaluate", "inspect"])
def test_recordings_of_other_signals_are_left_out_with_one_line_each(
    command: str, tmp_path: Path, run: Run
) -> None:
    metrics = ExportMetricsServiceRequest()
    metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="requests")
    (tmp_path / "a.otlp").write_bytes(pack_frame(body(span())))
    (tmp_path / "a.metrics.otlp").write_bytes(pack_frame(metrics.SerializeToString()))
    (tmp_path / "b.metrics.otlp.gz").write_bytes(b"not read")

    done = run(command, tmp_path, "--format", "jsonl")

    assert done.code == 0
    assert done.complaints == [
        f"{tmp_path}/a.metrics.otlp: left out, it holds the metrics signal",
        f"{tmp_path}/b.metrics.otlp.gz: left out, it holds the metrics signal",
    ]
    traces = {json.loads(line)["trace_id"] for line in done.out.splitlines()}
    assert traces - {None} == {trace_id(1).hex()}


@for_each("command", ["evaluate", "inspect"])
def test_a_recording_that_cannot_be_read_is_one_line(
    command: str, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "a.otlp"
    file.write_bytes(pack_frame(b"\xff"))

    done = run(command, file)

    complaint = f"{file}: request 1: the body is not an ExportTraceServiceRequest"
    assert (done.code, done.complaints) == (1, [complaint])


CONFIG = """
evaluators:
  tool_correctness: {threshold: 0.9}
  coherence: {enabled: false}
judge: {model: openai/gpt-4o-mini}
judges:
  polite: {rubric: "Is it polite?"}
"""


def test_rows_say_what_a_configuration_turns_on_and_the_threshold_in_force(
    tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "spanwise.yaml"
    file.write_text(CONFIG)

    rows = json.loads(run("evaluators", "--config", file, "--format", "json").out)
    heads, *lines = run("evaluators", "--config", file).out.splitlines()

    on = {(each["name"], each["method"]): each for each in rows if each["on"]}
    assert on["tool_correctness", "deterministic"]["threshold"] == 0.9
    assert not [key for key in on if key[0] == "coherence"]
    assert ("polite", "llm_judge") in on
    assert {each["on"] for each in rows} == {True, False}
    assert heads.split()[:2] == ["NAME", "ON"]
    assert {line.split()[1] for line in lines} == {"yes", "-"}
