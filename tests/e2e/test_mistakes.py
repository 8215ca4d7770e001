"""Errors of the user's making, as the user meets them: one clear line each, exit 1 or 2, never a traceback."""

import socket
from pathlib import Path

import pytest

from tests.support.command import settings, spanwise
from tests.support.service import Service
from tests.support.table import for_each

pytestmark = [pytest.mark.e2e]

RECORDINGS = str(Path(__file__).parents[1] / "data" / "captures" / "strands" / "session.otlp")
WITHOUT_EMBEDDER = ("embedder.kind=none", "evaluators.coherence.enabled=true")
FREE_PORTS = ("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("broken") / "broken.yaml"
    file.write_text("admin:\n  port: 5\n bad\n")
    return file


def test_misspelt_evaluators_and_options_name_their_paths() -> None:
    ended = spanwise(
        "validate",
        *settings(
            "evaluators.agent_relability.threshold=0.5",
            "evaluators.loop_detection.treshold=0.5",
            "evaluators.agent_reliability.signals=[mood]",
        ),
    )

    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.complaints] == [
        "evaluators.agent_relability",
        "evaluators.agent_reliability.signals",
        "evaluators.loop_detection.treshold",
    ]
    assert "did you mean agent_reliability?" in ended.complaints[0]


@for_each(
    ("arguments", "words"),
    [
        (["evaluate", "/no/such/folder"], ["/no/such/folder"]),
        (["inspect", "/no/such.otlp"], ["/no/such.otlp"]),
        (["run", "--config", "/no/such.yaml"], ["/no/such.yaml"]),
        (["run", "--config", "BROKEN"], ["BROKEN:3:"]),
        (["evaluate", str(Path(__file__))], ["not a recording", ".otlp"]),
        (["evaluate", RECORDINGS, "--output", "/no/such/file"], ["/no/such/file"]),
        (["evaluate", RECORDINGS, "--summary", "/no/such/file"], ["/no/such/file"]),
        (["evaluate", RECORDINGS, "--fail-under", "coherence"], ["NAME=VALUE"]),
        (["evaluate", RECORDINGS, "--fail-under", "cohesion=0.5"], ["cohesion"]),
        (
            ["evaluate", RECORDINGS, "--evaluators", "loop_detection,coherense"],
            ["coherense", "did you mean coherence?"],
        ),
        (["run", "--set", "admin"], ["admin", "path=value"]),
        (["run", *settings("data_dir=/proc/nothing", *FREE_PORTS)], ["data_dir"]),
        (["validate", *settings(*WITHOUT_EMBEDDER)], ["evaluators.coherence", "embedder"]),
        (["rnu"], ["rnu"]),
    ],
)
def test_each_is_one_line(arguments: list[str], words: list[str], broken: Path) -> None:
    given = [each.replace("BROKEN", str(broken)) for each in arguments]
    spanwise(*given).assert_one_line(*(each.replace("BROKEN", str(broken)) for each in words))


def test_a_truncated_recording_says_where(tmp_path: Path) -> None:
    recording = tmp_path / "cut.otlp"
    recording.write_bytes(Path(RECORDINGS).read_bytes()[:-7])

    spanwise("evaluate", str(recording)).assert_one_line(str(recording))


def test_a_port_that_is_taken_is_named_with_its_setting(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for name in ("receiver.grpc.port", "receiver.http.port", "admin.port"):
            free = [each for each in FREE_PORTS if not each.startswith(name)]
            ended = spanwise(
                "run", *settings(f"data_dir={tmp_path / 'data'}", *free, f"{name}={port}")
            )

            ended.assert_one_line(str(port), name)


def test_a_second_run_on_the_same_data_folder_is_one_line(tmp_path: Path) -> None:
    with Service(tmp_path / "data") as service:
        ended = spanwise("run", *settings(f"data_dir={service.data}", *FREE_PORTS))

        assert ended.code == 1
        ended.assert_one_line(str(service.data))
        assert service.get("/healthz") is not None


def test_good_settings_are_valid() -> None:
    """Else `validate` could refuse everything."""
    ended = spanwise("validate", "--config", "spanwise.yaml")

    assert (ended.code, ended.err) == (0, "")
