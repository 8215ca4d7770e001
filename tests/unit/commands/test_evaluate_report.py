"""What `spanwise evaluate` prints and writes: the summary, what failed, every score, what it would keep, JUnit."""

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.frames import pack_frame, read_frames
from tests.support.asking import asked
from tests.support.command import Ended, Run, settings
from tests.support.received_log import spans_of
from tests.unit.commands.test_compare import recorded


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    recorded(tmp_path / "good.otlp", "1.4", fails=False, sessions=2)
    recorded(tmp_path / "bad.otlp", "1.5", fails=True, sessions=3, first=2)
    return tmp_path


@pytest.fixture
def evaluate(run: Run) -> Run:
    """`spanwise evaluate ARGUMENTS` with two evaluators."""
    names = ("--evaluators", "tool_correctness,confidence")
    return lambda *arguments: run("evaluate", *arguments, *names)


def test_it_prints_the_summary_and_how_many_fail(evaluate: Run, recording: Path) -> None:
    out = evaluate(recording).out

    assert "of 5 sessions failed somewhere; `--failed` lists where and why\n" in out
    assert "mean" in out
    assert "session 1.5-" not in out


def test_failed_lists_sessions_that_fail_and_none_that_does_not(
    evaluate: Run, recording: Path
) -> None:
    out = evaluate(recording, "--failed").out

    assert "shop: session 1.5-4\n" in out
    assert "shop: session 1.4-1\n" not in out
    rows = [line for line in out.splitlines() if " fail " in line]
    assert rows
    assert all(" pass" not in line for line in rows)


def test_where_nothing_fails_nothing_is_listed(evaluate: Run, recording: Path) -> None:
    done = evaluate(recording / "good.otlp", "--failed")

    assert "0 of 2 sessions failed somewhere\n" in done.out


def test_csv_has_every_score_and_no_number_for_what_was_not_measured(
    evaluate: Run, recording: Path, tmp_path: Path
) -> None:
    evaluate(recording, "--csv", tmp_path / "out.csv")

    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {each["evaluator"] for each in rows} == {"tool_correctness", "confidence"}
    assert {each["session_id"] for each in rows} >= {"1.4-1", "1.5-4"}
    for each in rows:
        assert (each["score"] == "") == (each["outcome"] != "scored")
        assert each["success"] in ("", "true", "false")


def test_a_formula_is_a_text(evaluate: Run, tmp_path: Path) -> None:
    hostile = recorded(tmp_path / "hostile.otlp", "=HYPERLINK(1)", fails=True, sessions=1)

    evaluate(hostile, "--csv", tmp_path / "out.csv")

    text = (tmp_path / "out.csv").read_text()
    assert ",'=HYPERLINK(1)," in text
    assert ",=HYPERLINK" not in text


def test_a_file_that_cannot_be_written_is_one_line(evaluate: Run, recording: Path) -> None:
    done = evaluate(recording, "--csv", "/no/such/file")

    done.assert_one_line("--csv: /no/such/file: No such file")


KEEP = ("--keep", *settings("forward.endpoint=backend:4317", "forward.keep.new_versions=0"))


def test_keep_says_what_would_be_forwarded_and_leaves_stdout_alone(
    evaluate: Run, recording: Path
) -> None:
    done = evaluate(recording, "--format", "jsonl", *KEEP, *settings("forward.keep.share=0"))

    rows = [line.split() for line in done.complaints if line.startswith(("failed", "dropped"))]
    assert done.code == 0
    assert [row[0] for row in rows] == ["failed", "dropped"]
    assert all(int(number) > 0 for row in rows for number in row[1:])
    assert "dropped" not in done.out


@pytest.mark.parametrize(("random", "reason"), [("f" * 14, "share"), ("0" * 14, "dropped")])
def test_keep_takes_the_randomness_that_the_spans_say(
    evaluate: Run, recording: Path, random: str, reason: str
) -> None:
    for file in recording.iterdir():
        with file.open("rb") as stream:
            found = [ExportTraceServiceRequest.FromString(each) for each in read_frames(stream)]
        for request in found:
            for each in spans_of(request):
                each.trace_state = f"ot=rv:{random}"
        file.write_bytes(b"".join(pack_frame(each.SerializeToString()) for each in found))
    rules = (f"forward.keep.{each}" for each in ("share=0.5", "failed=false", "slow=null"))

    done = evaluate(recording, *KEEP, *settings(*rules))

    said = [line.split()[0] for line in done.complaints]
    assert done.code == 0
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
    limit: str, code: int, said: str, tmp_path: Path, run: Run
) -> None:
    certain = asked("s", "Has it left?", "Yes, it left on Monday.")
    hedged = asked("s", "Has it left?", "I am not sure. Maybe it left, perhaps not.", number=1)
    file = tmp_path / "a.otlp"
    file.write_bytes(pack_frame(certain) + pack_frame(hedged))

    names = ("--evaluators", f"{MEAN},step_efficiency", *settings("embedder.kind=none"))
    done = run("evaluate", file, *names, "--fail-under", limit)

    assert (done.code, done.err[: len(said)]) == (code, said)


LOGS = Path(__file__).parents[2] / "data" / "captures_logs"


LOOP = LOGS / "codex" / "loop.logs.otlp"


def cases(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [case for case in root.iter("testcase") if case.find(kind) is not None]


def evaluated(run: Run, file: Path, *arguments: object) -> tuple[Ended, ElementTree.Element]:
    done = run("evaluate", *arguments, "--format", "jsonl", "--junit", file)
    return done, ElementTree.parse(file).getroot()


def test_a_session_that_fell_is_a_failure_with_its_reasons(tmp_path: Path, run: Run) -> None:
    done, root = evaluated(run, tmp_path / "out.xml", LOOP)

    (suite,) = root.findall("testsuite")
    (case,) = cases(root, "failure")
    counts = {name: suite.get(name) for name in ("name", "tests", "failures")}
    said = case.findtext("failure") or ""
    assert done.code == 0
    assert counts == {"name": "codex_exec", "tests": "1", "failures": "1"}
    assert case.get("classname") == "codex_exec"
    assert "is below 0.5" in said
    assert "step_efficiency of trace" in said


def test_a_session_of_which_nothing_is_scored_is_skipped(tmp_path: Path, run: Run) -> None:
    blind = LOGS / "genai_oai_agents_event_only" / "weather.otlp"
    _, root = evaluated(run, tmp_path / "out.xml", "--evaluators", "agent_reliability", blind)

    assert cases(root, "failure") == []
    assert len(cases(root, "skipped")) == len(list(root.iter("testcase")))


def test_a_limit_that_is_not_met_is_a_failure_of_its_own(tmp_path: Path, run: Run) -> None:
    under = ("--fail-under", "step_efficiency=0.99", "--fail-under", "runaway=0.1")
    done, root = evaluated(run, tmp_path / "out.xml", *under, LOOP)

    limits = {
        case.get("name"): case.find("failure") is not None
        for case in root.iter("testcase")
        if case.get("classname") == "fail-under"
    }
    assert done.code == 1
    assert limits == {"step_efficiency": True, "runaway": False}
    assert "step_efficiency: mean" in done.err


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, run: Run) -> None:
    done = run("evaluate", LOOP, "--junit", tmp_path / "no" / "out.xml")

    assert done.code != 0
    assert "--junit" in done.err
    assert "Traceback" not in done.err
