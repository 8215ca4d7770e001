"""`spanwise evaluate` beside what others run: third parties' evaluators, and a judge that answers rubbish once."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import plugin
from tests.support.asking import asked, trace_id
from tests.support.command import evaluated, settings
from tests.support.openai_server import OpenAiServer
from tests.support.recordings import write

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def recorded(folder: Path, *requests: bytes) -> list[str]:
    """A recording of these, and settings: without an embedder, whose model takes long to load."""
    write(folder / "recorded.otlp", requests)
    chosen = settings("embedder.kind=none", f"data_dir={folder / 'data'}")
    return [str(folder / "recorded.otlp"), *chosen]


def test_a_third_partys_evaluator_that_dies_ends_neither_the_command_nor_other_scores(
    tmp_path: Path,
) -> None:
    installed = plugin.install(tmp_path / "installed")

    requests = [asked("s", t, number=n) for n, t in enumerate(("hello", "die", "hello again"))]
    signals = evaluated(
        *recorded(tmp_path, *requests),
        *("--evaluators", "this_test/obeys,confidence"),
        environment={"PYTHONPATH": str(installed)},
    )

    found = {(each["trace_id"], each["evaluator"]): each for each in signals}
    lost = found.pop((trace_id("s", 1), "this_test/obeys"))
    assert lost["error"]["type"] == "worker_died"
    assert len(found) == 5
    assert {each["outcome"] for each in found.values()} == {"scored"}


class RubbishFirst(OpenAiServer):
    """Answers rubbish to the first two requests: to a question, and when it is asked again."""

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer."""
        self.mode = "garbage" if len(self.requests) < 2 else "good"
        return super().chat(body)


def test_a_judges_answer_that_cannot_be_read_is_kept_for_no_other_session(tmp_path: Path) -> None:
    """Two sessions of the same words, judged one after the other: what the judge is asked is the same."""
    with RubbishFirst() as server:
        signals = evaluated(
            *recorded(tmp_path, asked("first", "Where is it?"), asked("second", "Where is it?")),
            *("--evaluators", "task_completion"),
            *settings(*server.settings, "judge.attempts=1", "judge.concurrency=1"),
        )

    first, second = sorted(signals, key=lambda each: each["outcome"])
    assert (first["outcome"], first["error"]["type"]) == ("failed", "parse_error")
    assert (second["outcome"], second["score"], second["judge"]["cached"]) == ("scored", 0.8, False)
    assert (first["final"], second["final"]) == (True, True)
