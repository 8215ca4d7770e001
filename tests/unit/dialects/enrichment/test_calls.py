"""Records of calls whose ids are shared, as some model servers give them, and of calls that go round in a circle."""

from collections.abc import Callable

from evaluators.trace.runaway import runaway
from tests.support.agent_records import claude, codex
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

PROMPT = claude(1, "user_prompt", 1_000, prompt="Go on.")
MANY = 3_000


def request(number: int, at: int) -> SpanSpec:
    return claude(number, "api_request", at, input_tokens=10, output_tokens=number, request_id="r")


def answer(number: int, at: int, text: str) -> SpanSpec:
    return claude(number, "assistant_response", at, response=text, request_id="r")


def test_model_calls_that_share_an_id_are_several_each_with_its_answer() -> None:
    first = request(2, 1_100), answer(3, 1_101, "One.")
    trace = trace_of(PROMPT, *first, request(4, 1_200), answer(5, 1_201, "Two."))

    assert [call.output for call in trace.model_calls] == ["One.", "Two."]
    assert (trace.tokens.input, trace.tokens.output) == (20, 6)


def test_messages_of_one_request_are_one_answer() -> None:
    trace = trace_of(PROMPT, request(2, 1_100), answer(3, 1_101, "One."), answer(4, 1_102, "Two."))

    assert [call.output for call in trace.model_calls] == ["One.\n\nTwo."]


def used(number: int, event: str, at: int) -> SpanSpec:
    ended = {"success": "true", "output": "Output:\nok"} if event == "tool_result" else {}
    return codex(number, event, at, tool_name="f", call_id="call_0", decision="approved", **ended)


def test_tool_calls_that_share_an_id_are_several() -> None:
    events = ["tool_decision", "tool_result"] * 2
    records = (used(n, event, 1_000 + 100 * n) for n, event in enumerate(events, 2))

    assert len(trace_of(*records).tool_calls) == 2


def test_a_call_that_was_decided_on_twice_is_one() -> None:
    records = [used(2, "tool_decision", 1_100), used(3, "tool_decision", 1_150)]

    assert len(trace_of(*records, used(4, "tool_result", 1_200)).tool_calls) == 1


@for_each("event", ["assistant_response", "tool_decision"])
def test_however_many_records_share_an_id_they_are_read(event: str) -> None:
    same = {"request_id": "r", "tool_use_id": "t", "tool_name": "Bash", "response": "x" * 100}

    trace = trace_of(
        PROMPT, *(claude(n, event, 1_000 + n, decision="accept", **same) for n in range(2, MANY))
    )

    assert trace.spans == 2


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
