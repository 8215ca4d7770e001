"""Agents that export no content: good, looping, failing or inventing, none of their recordings passes anything.

`SPANWISE_CAPTURES` names one more folder of recordings.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from collector.config.tree import Config
from tests.golden.test_captures import FOLDER
from tests.support.blinding import hidden, with_other_answers, without_content, without_text
from tests.support.recorded_signals import Signal, signals_of

SETTINGS = Config(workers=0)
NEEDS_NO_CONTENT = {"latency", "cost", "token_usage", "work_baseline", "task_agreement"}
Copy = Callable[[Path, Path], Path]
OURS = Path(__file__).parents[1] / "data" / "captures"
RECORDED_BLIND = ("openai_v2", "google_adk")
"""By default these libraries export no content."""


def recordings(*stacks: str, scenario: str = "*") -> list[Path]:
    names = [f"{stack}/{scenario}.otlp" for stack in stacks]
    found = (path for folder in {OURS, FOLDER} for name in names for path in folder.glob(name))
    return sorted(path for path in found if path.suffixes == [".otlp"])


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def signals(recording: Path) -> list[Signal]:
    found = signals_of(SETTINGS, recording)
    for each in found:
        del each["time"]  # of reading, offline
    return found


def copied(how: Copy, recording: Path, folder: Path) -> Path:
    return how(recording, folder / f"{how.__name__}-{recording.name}")


def assert_blind(found: list[Signal]) -> None:
    """No pass, nothing perfect, and the reason of each is the right one."""
    assert found
    assert [s for s in found if s["success"] or s["score"] == 1 or s["assumed"]] == []
    for signal in found:
        kind = (signal["outcome"], signal["reason"])
        if signal["evaluator"].startswith("agent_"):
            empty = signal["coverage"] == {"expected": 0, "present": 0}
            assert kind == (
                ("not_applicable", "nothing_to_judge") if empty else ("skipped", "low_coverage")
            )
        elif signal["outcome"] == "scored":
            assert signal["success"] is False
        elif signal["evaluator"] not in NEEDS_NO_CONTENT:
            assert kind in {("not_applicable", "no_content"), ("not_applicable", "not_a_turn")}


WITH_CONTENT = [
    *recordings("openai_v2_exp", "google_adk_content"),
    *recordings("pydantic_ai", "agent_framework", "vercel_ai", scenario="loop"),
]
MASKABLE = recordings("langgraph_oi", "oai_agents_oi", scenario="session")


@pytest.mark.parametrize(
    ("how", "recording"),
    [
        *((without_content, each) for each in WITH_CONTENT),
        *((hidden, each) for each in MASKABLE),  # a placeholder is no content
        *((None, each) for each in recordings(*RECORDED_BLIND)),
    ],
    ids=lambda value: name(value) if isinstance(value, Path) else value and value.__name__,
)
def test_without_content_nothing_passes(how: Copy | None, recording: Path, tmp_path: Path) -> None:
    assert_blind(signals(copied(how, recording, tmp_path) if how else recording))


def test_with_content_the_same_recordings_pass() -> None:
    recording = OURS / "openai_v2_exp" / "session.otlp"

    assert any(s["success"] for s in signals(recording) if s["evaluator"] == "agent_reliability")


def test_inventions_that_are_not_exported_are_neither_better_nor_worse(tmp_path: Path) -> None:
    recording = OURS / "openai_v2_exp" / "session.otlp"
    invented = copied(with_other_answers, recording, tmp_path)
    assert signals(invented) != signals(recording)

    assert signals(copied(without_content, invented, tmp_path)) == signals(
        copied(without_content, recording, tmp_path)
    )


@pytest.mark.parametrize(
    "recording", recordings("pydantic_ai", "agent_framework", scenario="loop"), ids=name
)
def test_calls_that_repeat_are_faults_when_only_they_are_exported(
    recording: Path, tmp_path: Path
) -> None:
    found = signals(copied(without_text, recording, tmp_path))

    failed = {s["evaluator"] for s in found if s["success"] is False}
    assert_blind(found)
    assert "step_efficiency" in failed


def test_tools_that_fail_are_faults_without_any_content(tmp_path: Path) -> None:
    recording = copied(without_content, OURS / "google_adk" / "wrongargs.otlp", tmp_path)

    (failed,) = [s for s in signals(recording) if s["final"] and s["success"] is False]

    assert (failed["evaluator"], failed["score"]) == ("tool_correctness", 0.0)
    assert "failed (`convert_currency`)" in failed["explanation"]
