"""What `spanwise evaluate` prints and writes: the summary, what failed, every score, what it would keep, JUnit."""

import csv
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.frames import pack_frame, read_frames
from tests.support.asking import asked
from tests.support.command import Ended, Run, settings
from tests.support.otlp import spans_of
from tests.support.service import ROOT
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


def test_failed_lists_the_sessions_that_fail_and_no_other(evaluate: Run, recording: Path) -> None:
    out = evaluate(recording, "--failed").out

    assert "shop: session 1.5-4\n" in out
    assert "shop: session 1.4-1\n" not in out
    rows = [line for line in out.splitlines() if " fail " in line]
    assert rows
    assert all(" pass" not in line for line in rows)
    nothing = evaluate(recording / "good.otlp", "--failed").out
    assert "0 of 2 sessions failed somewhere\n" in nothing


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


@pytest.mark.parametrize("option", ["--csv", "--junit"])
def test_a_file_that_cannot_be_written_is_one_line(
    evaluate: Run, recording: Path, option: str
) -> None:
    done = evaluate(recording, option, "/no/such/file")

    done.assert_one_line(f"{option}: /no/such/file: No such file")


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


# --- `--junit`: what a CI system shows of a run ---

CAPTURES = ROOT / "tests" / "data" / "captures_logs"
LOOP = CAPTURES / "codex" / "loop.logs.otlp"


@pytest.fixture
def reported(run: Run, tmp_path: Path) -> Callable[..., tuple[Ended, list[Element]]]:
    """How `evaluate ARGUMENTS --junit` ended, and the suites and cases of its report."""

    def ran(*arguments: object) -> tuple[Ended, list[Element]]:
        file = tmp_path / "out.xml"
        done = run("evaluate", *arguments, "--format", "jsonl", "--junit", file)
        return done, list(ElementTree.parse(file).getroot().iter())

    return ran


Reported = Callable[..., tuple[Ended, list[Element]]]


def test_a_session_that_fell_is_a_failure_with_its_reasons(reported: Reported) -> None:
    done, found = reported(LOOP)

    (suite,) = (each for each in found if each.tag == "testsuite")
    (case,) = (each for each in found if each.tag == "testcase" and len(each))
    assert done.code == 0
    assert [suite.get(name) for name in ("name", "tests", "failures")] == ["codex_exec", "1", "1"]
    assert case.get("classname") == "codex_exec"
    said = case.findtext("failure") or ""
    assert "is below 0.5" in said
    assert "step_efficiency of trace" in said


def test_a_session_of_which_nothing_is_scored_is_skipped(reported: Reported) -> None:
    blind = CAPTURES / "genai_oai_agents_event_only" / "weather.otlp"
    _, found = reported("--evaluators", "agent_reliability", blind)

    kinds = [[part.tag for part in each] for each in found if each.tag == "testcase"]
    assert kinds == [["skipped"]] * len(kinds) != []


def test_a_limit_that_is_not_met_is_a_failure_of_its_own(reported: Reported) -> None:
    under = ("--fail-under", "step_efficiency=0.99", "--fail-under", "runaway=0.1")
    done, found = reported(*under, LOOP)

    limits = {
        each.get("name"): len(each) for each in found if each.get("classname") == "fail-under"
    }
    assert done.code == 1
    assert limits == {"step_efficiency": 1, "runaway": 0}
    assert "step_efficiency: mean" in done.err
