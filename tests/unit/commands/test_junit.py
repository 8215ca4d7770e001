"""`evaluate --junit`: what a CI system shows of a run."""

from pathlib import Path
from xml.etree import ElementTree

from tests.support.command import Ended, Run

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
