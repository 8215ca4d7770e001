"""`import spanwise`: what it reads, scores and asserts, in plain code and where an event loop runs."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import spanwise
from collector.base.errors import ConfigError
from evaluators.errors import PluginError
from tests.support.command import evaluated
from tests.support.command import spanwise as spanwise_command
from tests.support.service import ROOT

CAPTURES = ROOT / "tests" / "data" / "captures"
RECORDING = CAPTURES / "dspy"
OWN = '''
from spanwise import Score, Trace, evaluator

@evaluator(version="1", threshold=0.5, reads={"tool_calls"})
def has_answer(trace: Trace) -> Score:
    """Whether there is an answer."""
    return Score(value=float(bool(trace.output)), explanation="looked")
'''


@spanwise.evaluator(version="1", threshold=0.5)
def always_low(trace: spanwise.Trace) -> spanwise.Score:
    """Never enough."""
    return spanwise.Score(value=0.25, explanation="<b>low</b>")


def bare(signal: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in signal.items() if key not in ("time", "revision")}


@pytest.mark.process
@pytest.mark.parametrize(
    "folder", [RECORDING, ROOT / "tests/data/captures_logs/claude_code_http_plain"]
)
def test_the_signals_are_those_of_the_command(folder: Path) -> None:
    scores = spanwise.evaluate(folder)

    assert list(map(bare, scores)) == list(map(bare, evaluated(str(folder))))


def test_a_file_its_bytes_and_one_request_are_read_alike() -> None:
    file = next(RECORDING.rglob("*.otlp"))
    content = file.read_bytes()
    size = int.from_bytes(content[:4], "big")

    assert spanwise.read(content) == spanwise.read(file) == spanwise.read(str(file))
    assert spanwise.read(content[4 : 4 + size])


async def test_a_part_of_a_recording_is_scored_alone_also_where_an_event_loop_runs() -> None:
    traces, only = spanwise.read(RECORDING)[:1], ["tool_correctness"]

    scores = spanwise.score(traces, evaluators=only)

    assert {(each["trace_id"], each["evaluator"]) for each in scores} == {
        (traces[0].trace_id, "tool_correctness")
    }
    waited = await spanwise.ascore(traces, evaluators=only)
    assert list(map(bare, scores)) == list(map(bare, waited))


def test_a_function_is_an_evaluator() -> None:
    scores = spanwise.score(spanwise.read(RECORDING), evaluators=[always_low])

    assert {each["score"] for each in scores} == {0.25}
    assert len(scores.failed()) == len(scores) > 0
    assert scores[0]["method"] == "custom"
    assert "&lt;b&gt;low&lt;/b&gt;" in scores._repr_html_()
    assert "<b>low" not in scores._repr_html_()


def test_an_assertion_names_the_trace_and_why() -> None:
    scores = spanwise.score(spanwise.read(RECORDING), evaluators=[always_low])

    spanwise.assert_scores(scores, always_low=0.25)
    with pytest.raises(
        AssertionError, match=r"always_low: trace `\w{32}` .* 0\.2500, below 0\.3"
    ) as raised:
        spanwise.assert_scores(scores, always_low=0.3)
    with pytest.raises(ConfigError, match="no evaluator of that name") as misspelt:
        spanwise.assert_scores(RECORDING, agent_reliabilty=0.3)
    for failed in (raised, misspelt):
        assert failed.traceback[1].ishidden(failed), "pytest shows the test, not our source"
        assert len(failed.traceback) == 2
    with pytest.raises(AssertionError, match="nothing was scored"):
        spanwise.assert_scores(scores, agent_reliability=0.1)
    with pytest.raises(ValueError, match="name an evaluator"):
        spanwise.assert_scores(scores)


@pytest.mark.process
def test_a_plugin_is_a_file_here_and_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "my_evals.py"
    file.write_text(OWN)

    scores = spanwise.evaluate(RECORDING, plugins=[file], evaluators=["my_evals/has_answer"])
    listed = spanwise_command("evaluators", "--plugin", str(file), "--format", "json")

    said = {(each["evaluator"], each["method"], each["outcome"]) for each in scores}
    assert said == {("my_evals/has_answer", "custom", "scored")}
    assert "my_evals/has_answer" in {each["name"] for each in json.loads(listed.out)}


@pytest.mark.process
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("x = 1\n", "no function in it is marked"),
        ("import no_such_thing\n", "no_such_thing"),
        ("def f(:\n", "SyntaxError"),
    ],
)
def test_a_wrong_plugin_is_one_clear_error(
    tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "my_evals.py"
    if content is not None:
        file.write_text(content)

    with pytest.raises(PluginError, match=message):
        spanwise.evaluate(RECORDING, plugins=[file])


def test_what_does_not_come_from_read_is_refused() -> None:
    names = dict.fromkeys(("trace_id", "service", "agent", "session_id"), "x")

    with pytest.raises(TypeError, match=r"spanwise\.read"):
        spanwise.score([spanwise.Trace(**names, session_source="trace")])
    with pytest.raises(TypeError, match="mark it with"):
        spanwise.score(spanwise.read(RECORDING), evaluators=[len])
    with pytest.raises(ConfigError, match="no such file"):
        spanwise.read("nowhere.otlp")


@pytest.mark.process
def test_importing_it_brings_nothing_heavy() -> None:
    code = "import sys, spanwise; print({'litellm', 'numpy', 'wordllama', 'grpc'} & {*sys.modules})"

    said = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)

    assert said.strip() == "set()"


@pytest.mark.heavy
def test_a_table_of_pandas_has_a_row_for_each_signal() -> None:
    scores = spanwise.evaluate(RECORDING)

    table = scores.to_pandas()

    assert list(table["id"]) == [each["id"] for each in scores]
    assert str(table["score"].dtype) == "float64"
    assert str(table["time"].dtype) == "datetime64[us, UTC]"
    assert table["score"].count() == sum(each["score"] is not None for each in scores)
    assert spanwise.Scores([]).to_pandas().empty
