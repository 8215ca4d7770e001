"""Where the records of SDKs belong: to the span whose id they carry, else to turns made of their histories."""

from typing import Any

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import place_record
from tests.support.table import for_each

DETAILS = "gen_ai.client.inference.operation.details"
SDK = "opentelemetry.instrumentation.genai.openai"
ASK = {"role": "user", "parts": [{"type": "text", "content": "Is it raining?"}]}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "id": "c1"}]}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "yes"}]}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}


def placed(*messages: Any, span: str = "cd" * 8, **more: Any) -> Place | Dropped | None:
    """Of a record with these messages, of a span unless that is empty."""
    fields: dict[str, Any] = {"name": DETAILS, "scope": SDK, "time_unix_nano": 1, **more}
    event = AgentEvent(
        attributes={"gen_ai.input.messages": [*messages]} if messages else {},
        resource={"service.name": "shop"},
        trace_id="ab" * 16 if span else "",
        span_id=span,
        **fields,
    )
    return place_record(event)


def place(*messages: Any, at: int = 1) -> Place:
    found = placed(*messages, span="", time_unix_nano=at)
    assert isinstance(found, Place)
    return found


BODY: Any = {"input": {"messages": []}}
ROLES = ("system", "user", "assistant", "tool", "developer")


@for_each(
    "more",
    [
        {},
        {"name": "gen_ai.choice"},
        *({"name": f"gen_ai.{role}.message"} for role in ROLES),
        {"name": "strands.telemetry.tracer", "body": BODY},
    ],
)
def test_words_with_a_span_stay_in_its_trace(more: dict[str, Any]) -> None:
    assert placed(*([] if more else [ASK]), **more) is None


@for_each("span", ["cd" * 8, ""])
@for_each("scope", ["ragas", SDK, "com.anthropic.claude_code.events", ""])
def test_a_score_that_somebody_gave_is_no_word_of_its_trace(scope: str, span: str) -> None:
    assert placed(name="gen_ai.evaluation.result", span=span, scope=scope) == "evaluation"


@for_each("name", ["gen_ai.evaluation.result", "gen_ai.choice", "renamed", ""])
def test_own_signals_that_come_back_are_dropped_as_such(name: str) -> None:
    assert placed(ASK, name=name, scope="spanwise") == "own"


@for_each(
    "more",
    [
        {"name": "gen_ai.client.operation.exception"},
        {"name": "", "body": "HTTP Request: POST /v1/chat"},
        {"name": "gen_ai.choice", "span": ""},
    ],
)
def test_records_that_lend_no_words_are_dropped(more: dict[str, Any]) -> None:
    assert placed(**more) == "no_agent"


def test_the_calls_after_the_same_words_of_a_person_are_one_turn_which_the_first_begins() -> None:
    first, second = place(ASK), place(ASK, CALL, RESULT)

    assert (first.session, first.is_prompt) == (second.session, True)
    assert not second.is_prompt


def test_results_in_the_users_name_are_not_a_persons_words() -> None:
    answered = place(ASK, CALL, {**RESULT, "role": "user"})

    assert (answered.session, answered.is_prompt) == (place(ASK).session, False)


def test_what_a_person_says_next_is_another_turn() -> None:
    assert place(ASK, SAID, ASK).session != place(ASK).session
    assert place(ASK, SAID, ASK).is_prompt


def test_the_order_of_keys_in_a_message_changes_nothing() -> None:
    assert place(dict(reversed(ASK.items()))).session == place(ASK).session


def test_records_without_words_are_each_by_itself() -> None:
    assert place(at=1).session != place(at=2).session
