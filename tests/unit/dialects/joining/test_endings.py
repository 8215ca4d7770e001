"""Why the last model call of a turn stopped: cut at a limit, blocked by a filter or the model, or done."""

from typing import Any

from collector.records.trace_summary import Summariser
from collector.scoring.running import RunningUses
from evaluators.model import Ending
from evaluators.uses import SessionUses
from tests.support.conventions import AGENT, dump, model, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

REASONS: list[tuple[Any, Ending]] = [
    (["length"], "cut"),
    (["max_tokens"], "cut"),
    ("MAX_TOKENS", "cut"),
    ('["max_output_tokens"]', "cut"),
    ("FinishReason.MAX_TOKENS", "cut"),
    ("FINISH_REASON_SAFETY", "blocked"),
    (["content_filter"], "blocked"),
    ("content-filter", "blocked"),
    (["refusal"], "blocked"),
    (["stop"], "whole"),
    (["tool_calls"], "whole"),
]
KEYS = (
    "gen_ai.response.finish_reasons",
    "gen_ai.response.finish_reason",
    "gen_ai.completion.0.finish_reason",
    "llm.response.finish_reason",
    "ai.response.finishReason",
    "gen_ai.response.stop_reason",
)

ANSWERS: list[tuple[Any, Ending | None]] = [
    ({"choices": [{"message": {"content": "The"}, "finish_reason": "length"}]}, "cut"),
    ({"role": "assistant", "content": "The", "stop_reason": "max_tokens"}, "cut"),
    ({"candidates": [{"content": {"parts": []}, "finishReason": "SAFETY"}]}, "blocked"),
    ([{"role": "assistant", "parts": [], "finish_reason": "content_filter"}], "blocked"),
    ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "cut"),
    ({"choices": [{"message": {"content": None, "refusal": "I will not."}}]}, "blocked"),
    ({"generations": [[{"generation_info": {"finish_reason": "stop"}}]]}, "whole"),
    ({"role": "assistant", "content": "stop_reason: max_tokens"}, None),
    ({"tool_calls": [{"arguments": {"finish_reason": "length"}}]}, None),
]


ROOT = SpanSpec(id=1, attributes=AGENT, end=9)


def ending_of(attributes: dict[str, Any]) -> Ending | None:
    return trace_of(ROOT, model(2, end=5, attributes=attributes)).model_calls[-1].ending


@for_each("key", KEYS)
@for_each(("reason", "ending"), REASONS)
def test_an_attribute_says_it(key: str, reason: Any, ending: Ending) -> None:
    assert ending_of({key: reason}) == ending


@for_each("answer,ending", ANSWERS)
def test_an_answer_says_it(answer: Any, ending: Ending | None) -> None:
    assert ending_of({"gen_ai.output.messages": dump(answer)}) == ending
    assert ending_of({"output.value": dump(answer), "openinference.span.kind": "LLM"}) == ending


def test_the_last_call_decides() -> None:
    reasons = enumerate((["length"], ["stop"]), 2)
    key = "gen_ai.response.finish_reasons"
    trace = trace_of(ROOT, *(model(n, n, attributes={key: reason}) for n, reason in reasons))

    assert [call.ending for call in trace.model_calls] == [None, "whole"]


def uses_of(reason: str | None, **root: Any) -> SessionUses:
    stated = {} if reason is None else {"gen_ai.response.finish_reasons": [reason]}
    top = SpanSpec(id=1, attributes={**AGENT, **root}, end=9)
    trace = trace_of(top, model(2, answer=said("The order"), end=5, attributes=stated))
    return RunningUses().of_turn(Summariser().summary(trace).turn)


@for_each(
    "reason,cut,blocked,cancelled",
    [
        ("length", True, False, False),
        ("refusal", False, True, False),
        ("stop", False, False, False),
        ("cancelled", None, None, True),
        (None, None, None, False),
    ],
)
def test_a_turn_is_a_use_of_what_it_tells(
    reason: str | None, cut: bool | None, blocked: bool | None, cancelled: bool
) -> None:
    uses = uses_of(reason)

    assert (uses.answer_cut, uses.answer_blocked, uses.cancelled) == (cut, blocked, cancelled)


def test_a_stopped_turn_is_a_failed_use_of_nothing_else() -> None:
    uses = uses_of("length", **{"error.type": "AbortError"})

    assert uses == SessionUses(model_failed=False, cancelled=True)
