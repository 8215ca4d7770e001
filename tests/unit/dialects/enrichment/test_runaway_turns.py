"""A made turn that goes round in a circle runs away like any trace."""

from collections.abc import Callable

from evaluators.trace.runaway import runaway
from tests.support.agent_records import claude, codex
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

TIMES = 12


def of_codex(number: int) -> SpanSpec:
    heading = f"Chunk ID: {number:06x}\nWall time: 0.{number} seconds\nProcess exited with code 0\n"
    ran = {"tool_name": "exec_command", "call_id": f"t{number}", "success": "true"}
    said = {"arguments": '{"cmd": "status"}', "output": f"{heading}Output:\nunknown\n"}
    return codex(number + 2, "tool_result", 2_000 + number, **ran, **said)


def of_claude(number: int) -> SpanSpec:
    ran = {"tool_name": "Bash", "tool_use_id": f"t{number}", "success": "true"}
    given = {"tool_input": '{"command": "status"}', "tool_input_size_bytes": "20"}
    return claude(number + 2, "tool_result", 2_000 + number, **ran, **given)


@for_each("agent,made", [(codex, of_codex), (claude, of_claude)])
def test_the_same_command_with_the_same_output_again_and_again_runs_away(
    agent: Callable[..., SpanSpec], made: Callable[[int], SpanSpec]
) -> None:
    prompt = agent(1, "user_prompt", 1_000, prompt="Is it done?")

    score = runaway(trace_of(prompt, *(made(number) for number in range(TIMES))))

    assert score.value == 0
    assert score.metadata["most_of_one_call"] == TIMES - 1
