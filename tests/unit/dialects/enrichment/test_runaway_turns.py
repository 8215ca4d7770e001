"""A made turn that goes round in a circle runs away like any trace."""

from collections.abc import Callable

import pytest

from evaluators.trace.runaway import runaway
from tests.support.agent_records import claude, codex
from tests.support.dialect_spans import SpanSpec, trace_of

TIMES = 12


def of_codex(number: int) -> SpanSpec:
    heading = f"Chunk ID: {number:06x}\nWall time: 0.{number} seconds\nProcess exited with code 0\n"
    return codex(
        number + 2,
        "tool_result",
        2_000 + number,
        tool_name="exec_command",
        call_id=f"t{number}",
        success="true",
        arguments='{"cmd": "status"}',
        output=f"{heading}Output:\nunknown\n",
    )


def of_claude(number: int) -> SpanSpec:
    return claude(
        number + 2,
        "tool_result",
        2_000 + number,
        tool_name="Bash",
        tool_use_id=f"t{number}",
        success="true",
        tool_input='{"command": "status"}',
        tool_input_size_bytes="20",
    )


@pytest.mark.parametrize(
    ("prompt", "made"),
    [
        (codex(1, "user_prompt", 1_000, prompt="Is it done?"), of_codex),
        (claude(1, "user_prompt", 1_000, prompt="Is it done?"), of_claude),
    ],
    ids=["codex", "claude_code"],
)
def test_the_same_command_with_the_same_output_again_and_again_runs_away(
    prompt: SpanSpec, made: Callable[[int], SpanSpec]
) -> None:
    trace = trace_of(prompt, *(made(number) for number in range(TIMES)))

    score = runaway(trace)

    assert score.value == 0
    assert score.metadata["most_of_one_call"] == TIMES - 1
