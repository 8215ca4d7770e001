"""`evaluate --junit`: what a CI system shows of a run."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from collector.commands import cli

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
LOGS = Path(__file__).parents[2] / "data" / "captures_logs"


def evaluated(file: Path, *arguments: str) -> tuple[int, ElementTree.Element]:
    code = cli.main(["evaluate", *arguments, "--format", "jsonl", "--junit", str(file)])
    return code, ElementTree.parse(file).getroot()


def cases(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [case for case in root.iter("testcase") if case.find(kind) is not None]


def test_a_session_that_fell_is_a_failure_with_its_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, root = evaluated(tmp_path / "out.xml", str(LOGS / "codex" / "loop.logs.otlp"))
    capsys.readouterr()

    (suite,) = root.findall("testsuite")
    (case,) = cases(root, "failure")
    failure = case.find("failure")
    assert code == 0
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == (
        "codex_exec",
        "1",
        "1",
    )
    assert case.get("classname") == "codex_exec"
    assert failure is not None
    assert failure.text is not None
    assert "is below 0.5" in failure.text
    assert "step_efficiency of trace" in failure.text


def test_a_session_of_which_nothing_is_scored_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = next((LOGS / "genai_oai_agents_event_only").glob("weather.otlp"))
    _, root = evaluated(tmp_path / "out.xml", "--evaluators", "agent_reliability", str(blind))
    capsys.readouterr()

    assert cases(root, "failure") == []
    assert len(cases(root, "skipped")) == len(list(root.iter("testcase")))


def test_a_limit_that_is_not_met_is_a_failure_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, root = evaluated(
        tmp_path / "out.xml",
        "--fail-under",
        "step_efficiency=0.99",
        "--fail-under",
        "runaway=0.1",
        str(LOGS / "codex" / "loop.logs.otlp"),
    )
    said = capsys.readouterr().err

    limits = {
        case.get("name"): case.find("failure") is not None
        for case in root.iter("testcase")
        if case.get("classname") == "fail-under"
    }
    assert code == 1
    assert limits == {"step_efficiency": True, "runaway": False}
    assert "step_efficiency: mean" in said


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(LOGS / "codex" / "retry.logs.otlp")
    code = cli.main(["evaluate", file, "--junit", str(tmp_path / "no" / "out.xml")])

    said = capsys.readouterr().err
    assert code != 0
    assert "--junit" in said
    assert "Traceback" not in said
