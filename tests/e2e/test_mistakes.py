"""Errors of the user's making, as the user meets them: one clear line each, exit 1 or 2, never a traceback."""

import gzip
import os
import socket
import struct
from pathlib import Path

import pytest

from tests.support.asking import asked
from tests.support.command import settings, spanwise
from tests.support.openai_server import OpenAiServer
from tests.support.service import Service
from tests.support.table import for_each

pytestmark = [pytest.mark.e2e]

RECORDING = str(Path(__file__).parents[1] / "data" / "captures" / "strands" / "session.otlp")
FREE_PORTS = ("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0")
MODELS = {
    "judge": ("judge.model=local/unknown", "judge.budget.usd_per_day=5"),
    "embedder": (
        *("embedder.kind=litellm", "embedder.model=local/unknown"),
        "judge.budget.usd_per_day=5",
    ),
}


@for_each(
    "arguments,words",
    [
        ("evaluate /no/such/folder", "/no/such/folder"),
        (f"evaluate {__file__}", "not a recording .otlp"),
        (f"evaluate {RECORDING} --output /no/such/file", "/no/such/file"),
        (f"evaluate {RECORDING} --summary /no/such/file", "/no/such/file"),
        (f"evaluate {RECORDING} --fail-under coherence", "NAME=VALUE"),
        (f"evaluate {RECORDING} --fail-under cohesion=0.5", "cohesion"),
        (f"evaluate {RECORDING} --evaluators loop_detection,coherense", "coherense coherence?"),
        ("inspect /no/such.otlp", "/no/such.otlp"),
        ("run --config /no/such.yaml", "/no/such.yaml"),
        ("run --set admin", "admin path=value"),
        ("run --set data_dir=/proc/nothing", "data_dir"),
        ("rnu", "rnu"),
        ("validate --set evaluators.agent_relability.threshold=1", "mean agent_reliability?"),
        ("validate --set evaluators.loop_detection.treshold=1", "loop_detection.treshold"),
        ("validate --set evaluators.agent_reliability.signals=[mood]", "mood"),
        ("validate --set embedder.kind=litellm", "embedder.model: required"),
        ("validate --set evaluators.helpfulness.enabled=true", "helpfulness: judge.model"),
        (
            "validate --set embedder.kind=none --set evaluators.coherence.enabled=true",
            "evaluators.coherence embedder",
        ),
        *(
            (" ".join(("validate", *settings(*given))), f"{name}.model: `local/unknown` known")
            for name, given in MODELS.items()
        ),
    ],
)
def test_each_is_one_line(arguments: str, words: str) -> None:
    spanwise(*arguments.split()).assert_one_line(*words.split())


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(each)) + each for each in bodies)


FILES = {
    "broken.yaml": b"admin:\n  port: 5\n bad\n",
    "field.expected.yaml": b"- {match: {turn: 1}, outputs: x}",
    "torn.expected.yaml": b"- [",
    "no-list.expected.yaml": b"match: {turn: 1}",
    "empty.otlp": b"",
    "junk.otlp": framed(b"\xff" * 40),
    "second.otlp": framed(asked("s", "Where?"), b"\x0a\xff\xff\xff\xff\x0f"),
    "head.otlp": b"\0\0",
    "announced.otlp": struct.pack(">I", 0xFFFFFFFF) + bytes(100),
    "cut.otlp": framed(asked("s", "Where?"))[:-7],
    "no.otlp.gz": b"this is not a gzip",
    "cut.otlp.gz": gzip.compress(framed(asked("s", "Where?")))[:-9],
    "list.json": b"[1, 2, 3]\n",
    "deep.json": b"[" * 100_000 + b"\n",
    "bytes.jsonl": b"\xff\xfe\x00{}\n",
    "pipe.otlp": None,
    "pipe.yaml": None,
    "pipe.expected.yaml": None,
}
"""What is in each; None: it is a pipe, which is not waited for."""


@for_each("name,content", FILES.items())
def test_a_file_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    file = tmp_path / name
    os.mkfifo(file) if content is None else file.write_bytes(content)
    given = ("evaluate", str(file))
    if name.endswith(".expected.yaml"):
        given = ("validate", "--set", f"expectations={file}")
    elif name.endswith(".yaml"):
        given = ("run", "--config", str(file))

    spanwise(*given, timeout=40).assert_one_line(str(file))


def test_a_port_that_is_taken_is_named_with_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for name in ("receiver.grpc.port", "receiver.http.port", "admin.port"):
            given = (f"data_dir={tmp_path / 'data'}", *FREE_PORTS, f"{name}={port}")
            spanwise("run", *settings(*given)).assert_one_line(str(port), name)


def test_a_second_run_on_the_same_data_folder_is_one_line(tmp_path: Path) -> None:
    with Service(tmp_path / "data") as service:
        ended = spanwise("run", *settings(f"data_dir={service.data}", *FREE_PORTS))

        ended.assert_one_line(str(service.data))
        assert service.get("/healthz") is not None


def test_good_settings_are_valid() -> None:
    """Else `validate` could refuse everything."""
    ended = spanwise("validate", "--config", "spanwise.yaml")

    assert (ended.code, ended.err) == (0, "")


def test_connect_asks_each_model_once_and_says_one_line_for_each_that_fails() -> None:
    with OpenAiServer() as server:
        models = settings(
            *server.settings,
            "evaluators.task_completion.model=openai/b",
            "evaluators.plan_quality.model=openai/test-judge",
            *("embedder.kind=litellm", "embedder.model=openai/test-vectors"),
            *(f"embedder.base_url={server.url}", "embedder.api_key=none"),
        )
        good = spanwise("validate", "--connect", *models)
        asked_models = [each["model"] for each in server.requests]
        server.mode = "500"
        bad = spanwise("validate", "--connect", *models)

    assert good.code == 0, good.err
    assert good.out.startswith("tried, and all right: data_dir, sinks.jsonl, judge.model, ")
    assert "embedder" in good.out
    assert asked_models == ["test-judge", "b"]
    assert bad.code == 1
    assert [line.partition(":")[0] for line in bad.complaints] == [
        "judge.model",
        "evaluators.task_completion.model",
    ]
    assert "`openai/test-judge` at http://127.0.0.1" in bad.complaints[0]
    assert "provider_error" in bad.complaints[0]
