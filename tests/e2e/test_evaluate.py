"""`spanwise evaluate` beside what others run: third parties' evaluators, and a judge that answers rubbish once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.base.frames import pack_frame
from tests.support import plugin
from tests.support.asking import asked, trace_id
from tests.support.command import Ended, spanwise
from tests.support.openai_server import OpenAiServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def evaluate(
    folder: Path,
    requests: Sequence[bytes],
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Without an embedder, whose model takes long to load."""
    recording = folder / "recorded.otlp"
    recording.write_bytes(b"".join(map(pack_frame, requests)))
    settings = ("embedder.kind=none", f"data_dir={folder / 'data'}")
    chosen = [part for each in settings for part in ("--set", each)]
    return spanwise("evaluate", str(recording), *chosen, *arguments, environment=environment)


def signals(ended: Ended) -> list[dict[str, Any]]:
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_a_third_partys_evaluator_that_dies_ends_neither_the_command_nor_other_scores(
    tmp_path: Path,
) -> None:
    installed = plugin.install(tmp_path / "installed")

    ended = evaluate(
        tmp_path,
        [asked("s", text, number=n) for n, text in enumerate(("hello", "die", "hello again"))],
        *("--format", "jsonl", "--evaluators", "this_test/obeys,confidence"),
        environment={"PYTHONPATH": str(installed)},
    )

    found = {(each["trace_id"], each["evaluator"]): each for each in signals(ended)}
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
        judge = (
            "judge.model=openai/test-judge",
            f"judge.base_url={server.url}",
            "judge.api_key=none",
            "judge.attempts=1",
            "judge.concurrency=1",
        )
        ended = evaluate(
            tmp_path,
            [asked("first", "Where is it?"), asked("second", "Where is it?")],
            *("--format", "jsonl", "--evaluators", "task_completion"),
            *(part for each in judge for part in ("--set", each)),
        )

    first, second = sorted(signals(ended), key=lambda each: each["outcome"])
    assert (first["outcome"], first["error"]["type"]) == ("failed", "parse_error")
    assert (second["outcome"], second["score"], second["judge"]["cached"]) == ("scored", 0.8, False)
    assert (first["final"], second["final"]) == (True, True)
