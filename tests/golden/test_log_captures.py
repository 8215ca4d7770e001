"""Recordings of agents and SDKs that speak in log records: what they carry is what we read.

`SPANWISE_LOG_CAPTURES` names another folder of recordings with expectations: of the programs whose recordings hold
their vendors' prompts and are not kept here.
"""

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml

from collector.config.tree import Config
from scripts.research.carried_logs import EXPECTATION, Lack, Recording, correct, lacks, searched
from tests.golden.test_changed_recordings import sent
from tests.support.capture_score import Claim, assert_most_hold
from tests.support.log_capture_score import score
from tests.support.recorded_signals import signals_of

OURS = Path(__file__).parents[1] / "data" / "captures_logs"
FOLDER = Path(os.environ.get("SPANWISE_LOG_CAPTURES") or OURS)
STACKS = sorted({path.parent.name for path in FOLDER.glob("*/*.expect.yaml")})
LACKING = {
    ("genai_oai_agents_event_only", "loop", "tool_call"): 12,
    ("opencode", "mcp", "tokens"): 1,
    ("opencode", "mcp", "tool_call"): 1,
    ("opencode", "rejected", "tokens"): 1,
    ("opencode", "rejected", "tool_call"): 1,
    ("opencode", "retry", "tokens"): 1,
    ("opencode", "session", "tokens"): 2,
    ("opencode", "session", "tool_call"): 1,
    ("qwen_code", "session", "tool_call"): 3,
}
"""Values said to be carried that stand in no byte: `python -m scripts.research.carried_logs FOLDER` names each."""

MISREAD = {
    ("tool_result", "codex/retry turn 1"),
    ("tool_result", "codex_plain/retry turn 1"),
    ("tool_error", "genai_openai_logs_only/retry turn 1"),
}
"""Of our recordings, what is not read as it is said to be: all else is, without an exception."""


@cache
def recordings() -> list[tuple[str, str, list[Lack], list[Claim]]]:
    """Stack, scenario, what it lacks, and the claims without that, of each recording."""
    found: list[tuple[str, str, list[Lack], list[Claim]]] = []
    for path, expected, lacking in searched(FOLDER):
        correct(lacking)
        scenario = path.name.removesuffix(EXPECTATION)
        claimed = [*score(path.parent, scenario, expected)]
        found.append((expected["stack"], scenario, lacking, claimed))
    return found


def claims() -> list[Claim]:
    return [claim for *_, found in recordings() for claim in found]


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_that_speaks_in_logs_is_read_right(stack: str) -> None:
    mine = [each for each in claims() if each.stack == stack]
    if FOLDER != OURS:
        assert_most_hold(mine, 0.9)
    else:
        assert_most_hold([each for each in mine if (each.field, each.where) not in MISREAD], 1)


def test_all_stacks_that_speak_in_logs_are_read_right() -> None:
    assert_most_hold(claims(), 0.97)


def test_what_is_said_to_be_carried_and_is_not_is_known() -> None:
    lacking: Counter[tuple[str, str, str]] = Counter()
    for stack, scenario, found, _ in recordings():
        lacking.update((stack, scenario, lack.field) for lack in found)
    here = {recording[:2] for recording in recordings()}

    assert lacking == {key: count for key, count in LACKING.items() if key[:2] in here}


def test_a_value_that_is_there_is_not_said_to_be_missing() -> None:
    """Of a recording that is read right, some values changed: only those are missing."""
    path = FOLDER / "claude_code_traces" / "retry.expect.yaml"
    expected = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert list(lacks(expected, Recording(path), by_id=True)) == []

    turn = expected["turn_list"][0]
    first, second, *_ = turn["tool_calls_requested"]
    first["args"]["command"], second["id"] = "ls nowhere", "call-of-nobody"
    turn["llm_calls_ok"], turn["input_tokens"] = 99, 10**6

    found = list(lacks(expected, Recording(path), by_id=True))
    assert [(each.bearer is turn, each.flags) for each in found] == [
        (False, ("args_exported",)),
        (False, ("name_exported", "args_exported")),
        (True, ("tokens_exported",)),
    ]


@pytest.mark.parametrize(("scenario", "reports"), [("session", 0), ("subagent", 1)])
def test_signals_name_the_traces_that_claude_code_sent(scenario: str, reports: int) -> None:
    """One for each prompt of a person; a helper's report begins a trace of its own, and stands in its prompt's."""
    recording = FOLDER / "claude_code_traces" / f"{scenario}.otlp"
    roots = [span for *_, span in sent(recording) if not span.parent_span_id]
    roots.sort(key=lambda span: span.start_time_unix_nano)
    prompts = {span.trace_id.hex() for span in roots[: len(roots) - reports]}

    signals = signals_of(Config(workers=0), recording.with_suffix(".logs.otlp"), recording)

    assert {each["trace_id"] for each in signals if each["evaluator"] == "confidence"} == prompts
