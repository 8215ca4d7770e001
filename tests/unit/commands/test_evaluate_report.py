"""What `spanwise evaluate` prints: the summary; with `--failed` what failed; with `--csv` every score."""

import csv
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.frames import pack_frame, read_frames
from collector.commands.cli import main
from tests.support.asking import asked
from tests.support.received_log import spans_of
from tests.unit.commands.test_compare import recorded


@pytest.fixture
def recording(tmp_path: Path) -> str:
    recorded(tmp_path / "good.otlp", "1.4", fails=False, sessions=2)
    recorded(tmp_path / "bad.otlp", "1.5", fails=True, sessions=3, first=2)
    return str(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["evaluate", *arguments, "--evaluators", "tool_correctness,confidence"]) == 0
    return capsys.readouterr().out


def test_it_prints_the_summary_and_how_many_fail(
    capsys: pytest.CaptureFixture[str], recording: str
) -> None:
    out = printed(capsys, recording)

    assert "of 5 sessions failed somewhere; `--failed` lists where and why\n" in out
    assert "mean" in out
    assert "session 1.5-" not in out


def test_failed_lists_sessions_that_fail_and_none_that_does_not(
    capsys: pytest.CaptureFixture[str], recording: str
) -> None:
    out = printed(capsys, recording, "--failed")

    assert "shop: session 1.5-4\n" in out
    assert "shop: session 1.4-1\n" not in out
    rows = [line for line in out.splitlines() if " fail " in line]
    assert rows
    assert all(" pass" not in line for line in rows)


def test_where_nothing_fails_nothing_is_listed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = recorded(tmp_path / "good.otlp", "1.4", fails=False, sessions=2)

    assert "0 of 2 sessions failed somewhere\n" in printed(capsys, str(good), "--failed")


def test_csv_has_every_score_and_no_number_for_what_was_not_measured(
    capsys: pytest.CaptureFixture[str], recording: str, tmp_path: Path
) -> None:
    printed(capsys, recording, "--csv", str(tmp_path / "out.csv"))

    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {each["evaluator"] for each in rows} == {"tool_correctness", "confidence"}
    assert {each["session_id"] for each in rows} >= {"1.4-1", "1.5-4"}
    for each in rows:
        assert (each["score"] == "") == (each["outcome"] != "scored")
        assert each["success"] in ("", "true", "false")


def test_a_formula_is_a_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hostile = recorded(tmp_path / "hostile.otlp", "=HYPERLINK(1)", fails=True, sessions=1)

    printed(capsys, str(hostile), "--csv", str(tmp_path / "out.csv"))

    text = (tmp_path / "out.csv").read_text()
    assert ",'=HYPERLINK(1)," in text
    assert ",=HYPERLINK" not in text


def test_a_file_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], recording: str
) -> None:
    assert main(["evaluate", recording, "--csv", "/no/such/file"]) == 1
    assert capsys.readouterr().err.startswith("--csv: /no/such/file: No such file")


def test_keep_says_what_would_be_forwarded_and_leaves_stdout_alone(
    capsys: pytest.CaptureFixture[str], recording: str
) -> None:
    rules = ["--set", "forward.endpoint=backend:4317", "--set", "forward.keep.share=0"]
    rules += ["--set", "forward.keep.new_versions=0"]
    names = ["--evaluators", "tool_correctness,confidence"]
    assert main(["evaluate", recording, "--format", "jsonl", "--keep", *rules, *names]) == 0
    said = capsys.readouterr()

    rows = [
        line.split() for line in said.err.splitlines() if line.startswith(("failed", "dropped"))
    ]
    assert [row[0] for row in rows] == ["failed", "dropped"]
    assert all(int(number) > 0 for row in rows for number in row[1:])
    assert "dropped" not in said.out


@pytest.mark.parametrize(("random", "reason"), [("f" * 14, "share"), ("0" * 14, "dropped")])
def test_keep_takes_the_randomness_that_the_spans_say(
    capsys: pytest.CaptureFixture[str], recording: str, random: str, reason: str
) -> None:
    for file in Path(recording).iterdir():
        with file.open("rb") as stream:
            found = [ExportTraceServiceRequest.FromString(each) for each in read_frames(stream)]
        for request in found:
            for each in spans_of(request):
                each.trace_state = f"ot=rv:{random}"
        file.write_bytes(b"".join(pack_frame(each.SerializeToString()) for each in found))
    rules = ("share=0.5", "failed=false", "slow=null", "new_versions=0")
    sets = [part for each in rules for part in ("--set", f"forward.keep.{each}")]
    names = ["--evaluators", "tool_correctness,confidence", "--set", "forward.endpoint=x:4317"]

    assert main(["evaluate", recording, "--keep", *sets, *names]) == 0

    said = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert [each for each in said if each in {"share", "dropped"}] == [reason]


MEAN = "confidence"
"""Of the two answers below, one certain and one that hedges, it is between the limits tried here."""


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        (f"{MEAN}=0.5", 0, ""),
        (f"{MEAN}=1", 1, f"{MEAN}: mean "),
        ("step_efficiency=0", 1, "step_efficiency: nothing was scored, so it is below 0\n"),
    ],
)
def test_a_mean_below_or_nothing_scored_is_exit_1(
    limit: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = ["Yes, it left on Monday.", "I am not sure. Maybe it left, perhaps not."]
    recording = tmp_path / "a.otlp"
    recording.write_bytes(
        b"".join(
            pack_frame(asked("s", "Has it left?", answer, number=number))
            for number, answer in enumerate(answers)
        )
    )

    ended = main(
        [
            *("evaluate", str(recording), "--set", "embedder.kind=none"),
            *("--evaluators", f"{MEAN},step_efficiency", "--fail-under", limit),
        ]
    )

    assert ended == code
    assert capsys.readouterr().err.startswith(said)
