"""What evaluators say of agents that speak in logs: loops are reported, good sessions and refused calls are not.

`SPANWISE_LOG_CAPTURES` names another folder of recordings.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from collector.config.tree import Config
from tests.golden.test_changed_recordings import sent
from tests.golden.test_log_captures import FOLDER
from tests.support.recorded_signals import signals_of

AGENTS = ("claude_code", "codex", "gemini_cli", "qwen_code")
EXPORTS_NOTHING = ("claude_code_http_plain", "gemini_cli_plain")
"""Stacks that export no arguments of tools: whether a call repeats another one is not seen."""


def recordings(*scenarios: str) -> list[str]:
    """`stack/scenario` of the coding agents' recordings that carry what their tools were asked."""
    found = (path for path in FOLDER.glob("*/*.logs.otlp") if path.stat().st_size)
    names = ((path.parent.name, path.name.partition(".")[0]) for path in found)
    return sorted(
        f"{stack}/{scenario}"
        for stack, scenario in names
        if stack.startswith(AGENTS) and stack not in EXPORTS_NOTHING and scenario in scenarios
    )


def files(recording: str) -> list[Path]:
    paths = (FOLDER / f"{recording}{kind}" for kind in (".logs.otlp", ".otlp"))
    return [path for path in paths if path.exists()]


@cache
def signals(recording: str) -> list[dict[str, Any]]:
    return signals_of(Config(workers=0), *files(recording))


def of(recording: str, evaluator: str) -> list[dict[str, Any]]:
    return [each for each in signals(recording) if each["evaluator"] == evaluator]


LOOPS = recordings("loop", "loop_resume")
GOOD = recordings("session", "session_resume", "rejected", "subagent", "parallel")


@pytest.mark.parametrize("recording", LOOPS)
def test_a_loop_shows_in_its_turns_and_in_the_session(recording: str) -> None:
    turns = [each["success"] for each in of(recording, "step_efficiency")]
    (session,) = of(recording, "agent_reliability")
    (repeats,) = of(recording, "repeated_calls")

    assert len(turns) == 4
    # In one recording the file that is looked at is empty once, which is another answer.
    assert turns.count(False) >= 3
    assert session["success"] is False or repeats["success"] is False


@pytest.mark.parametrize("recording", GOOD)
def test_nothing_fails_in_a_good_session(recording: str) -> None:
    assert [each["explanation"] for each in signals(recording) if each["success"] is False] == []


@pytest.mark.parametrize("recording", recordings("rejected"))
def test_a_trace_whose_only_call_was_refused_has_no_tool_correctness(recording: str) -> None:
    (signal,) = of(recording, "tool_correctness")

    assert (signal["outcome"], signal["score"]) == ("not_applicable", None)


def test_the_work_of_sessions_is_ranked_among_the_earlier_ones_of_the_agent() -> None:
    stack = FOLDER / "claude_code"
    paths = sorted(path for path in stack.glob("*.logs.otlp") if path.stat().st_size)

    every = signals_of(Config(workers=0), *paths)
    baselines = [each for each in every if each["evaluator"] == "work_baseline"]

    assert len(baselines) > 10
    assert {each["reason"] for each in baselines[:10]} == {"warming_up"}
    assert {each["outcome"] for each in baselines[10:]} == {"scored"}


@pytest.mark.parametrize("recording", ["claude_code_traces/session", "claude_code_traces/subagent"])
def test_signals_name_the_traces_that_claude_code_sent(recording: str) -> None:
    """One for each prompt of a person; a helper's report begins a trace of its own, and stands in its prompt's."""
    spans = (span for *_, span in sent(FOLDER / f"{recording}.otlp"))
    roots = [span for span in spans if not span.parent_span_id]
    reports = {"session": 0, "subagent": 1}[recording.partition("/")[2]]
    roots.sort(key=lambda span: span.start_time_unix_nano)
    prompts = {span.trace_id.hex() for span in roots[: len(roots) - reports]}

    assert {each["trace_id"] for each in of(recording, "confidence")} == prompts
