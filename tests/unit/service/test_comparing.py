"""Third parties' evaluators that read the texts of earlier turns: verdicts that workers give."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.config.tree import Config
from collector.service.logs import groups
from tests.support import plugin
from tests.support.asking import asked

ECHOES = """
from evaluators import History, Score, Trace, evaluator


@evaluator(version="1")
def echoes(trace: Trace, *, history: History) -> Score:
    \"""Share of the last three turns that were answered in the same way.\"""
    same = sum(each.output == trace.output for each in history.previous)
    return Score(value=same / 3, explanation=" | ".join(each.input or "" for each in history.previous))
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = plugin.install(tmp_path / "installed", ECHOES)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    with plugin.imported_from(folder):
        yield


def conversation(*answers: str) -> bytes:
    requests = [
        asked("talk", f"question {number}", answer, number=number)
        for number, answer in enumerate(answers)
    ]
    return b"".join(len(each).to_bytes(4, "big") + each for each in requests)


@pytest.mark.process
@pytest.mark.usefixtures("installed")
def test_each_turn_is_compared_with_the_three_before_it(tmp_path: Path) -> None:
    import spanwise  # noqa: PLC0415 - it discovers what is installed

    file = tmp_path / "talk.otlp"
    file.write_bytes(conversation("yes", "yes", "no", "yes", "yes"))

    scores = spanwise.score(spanwise.read(file), evaluators=["this_test/echoes"])

    given = sorted((each["explanation"], each["score"]) for each in scores)
    assert [(score, explanation) for explanation, score in given] == [
        (0.0, ""),
        (0.3333, "question 0"),
        (0.0, "question 0 | question 1"),
        (0.6667, "question 0 | question 1 | question 2"),
        (0.6667, "question 1 | question 2 | question 3"),
    ]


@pytest.mark.process
@pytest.mark.usefixtures("installed")
def test_the_log_keeps_traces_until_they_are_compared() -> None:
    assert "comparing" in groups(Config())["traces"]


def test_without_such_an_evaluator_nothing_waits_for_it() -> None:
    assert "comparing" not in groups(Config())["traces"]
