"""Langfuse, also before it had types of observations (3.0 to 3.2)."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.openai_messages import ASKED, FUNCTION, TOLD
from tests.support.weather import (
    ANSWER,
    RESULT,
    USER,
    compact,
    one_call,
)


def observed(kind: str, name: str = "", **own: Any) -> dict[str, Any]:
    return {NAME: name, **under("langfuse.observation.", type=kind, **own)}


def generation(given: list[Any], came: Any = None) -> dict[str, Any]:
    """A text as it is; what is no text as JSON."""
    output = {} if came is None else {"output": came if isinstance(came, str) else compact(came)}
    return observed("generation", "OpenAI", input=compact(given), **output)


def in_turn(*spans: dict[str, Any]) -> Trace:
    return trace_of({NAME: "turn"}, *spans, scope="langfuse-sdk")


NAMELESS = generation([USER], {"role": "assistant", "tool_calls": [{"function": FUNCTION}]})


def test_a_nameless_call_is_found_once_though_another_answer_is_missing() -> None:
    assert one_call(in_turn(NAMELESS, generation([USER, ASKED, TOLD]))).result == RESULT


def test_a_plain_text_is_an_answer_so_no_history_is_searched_for_its_calls() -> None:
    spans = generation([USER], "Wait."), generation([USER, ASKED, TOLD], ANSWER)

    assert in_turn(*spans).tool_calls == ()
