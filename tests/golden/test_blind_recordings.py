"""Agents that export no content: good, looping or failing, none of their recordings passes anything.

`SPANWISE_CAPTURES` names one more folder of recordings.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from collector.config.tree import Config
from tests.golden.test_captures import FOLDER
from tests.support.blinding import hidden, without_content
from tests.support.recorded_signals import signals_of

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
    """No pass, nothing perfect, and the reason of each is the right one."""
    found = signals_of(SETTINGS, how(recording, tmp_path / recording.name) if how else recording)

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


def test_with_content_the_same_recordings_pass() -> None:
    recording = OURS / "openai_v2_exp" / "session.otlp"

    assert any(
        s["success"]
        for s in signals_of(SETTINGS, recording)
        if s["evaluator"] == "agent_reliability"
    )
