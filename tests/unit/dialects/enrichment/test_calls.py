"""Records of calls whose ids are shared, as some model servers give them."""

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
