"""Where the records of SDKs belong: to the span whose id they carry, else to turns made of their histories."""

from typing import Any

import pytest

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place
from evaluators.dialects.turns.registry import place_record

DETAILS = "gen_ai.client.inference.operation.details"
SDK = "opentelemetry.instrumentation.genai.openai"
ASK = {"role": "user", "parts": [{"type": "text", "content": "Is it raining?"}]}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "id": "c1"}]}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "yes"}]}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}


def placed(
    *messages: Any,
    name: str = DETAILS,
    span: str = "",
    body: Any = None,
    at: int = 1,
    scope: str = SDK,
) -> Place | Dropped | None:
    event = AgentEvent(
        name=name,
        time_unix_nano=at,
        scope=scope,
        attributes={"gen_ai.input.messages": [*messages]} if messages else {},
        body=body,
        resource={"service.name": "shop"},
        trace_id="ab" * 16 if span else "",
        span_id=span,
    )
    return place_record(event)


def place(*messages: Any, at: int = 1) -> Place:
    found = placed(*messages, at=at)
    assert isinstance(found, Place)
    return found


def test_words_with_a_span_stay_in_its_trace() -> None:
    body: Any = {"input": {"messages": []}}

    assert placed(ASK, span="cd" * 8) is None
    assert placed(name="gen_ai.choice", span="cd" * 8) is None
    assert placed(name="strands.telemetry.tracer", span="cd" * 8, body=body) is None


@pytest.mark.parametrize("span", ["cd" * 8, ""])
@pytest.mark.parametrize("scope", ["ragas", SDK, "com.anthropic.claude_code.events", ""])
def test_a_score_that_somebody_gave_is_no_word_of_its_trace(scope: str, span: str) -> None:
    assert placed(name="gen_ai.evaluation.result", span=span, scope=scope) == "evaluation"


@pytest.mark.parametrize("name", ["gen_ai.evaluation.result", "gen_ai.choice", "renamed", ""])
def test_own_signals_that_come_back_are_dropped_as_such(name: str) -> None:
    assert placed(ASK, name=name, span="cd" * 8, scope="spanwise") == "own"


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "developer"])
def test_events_with_messages_lend_words(role: str) -> None:
    assert placed(name=f"gen_ai.{role}.message", span="cd" * 8) is None


def test_other_genai_events_lend_none() -> None:
    assert placed(name="gen_ai.client.operation.exception", span="cd" * 8) == "no_agent"


def test_records_of_no_agent_are_dropped() -> None:
    assert placed(name="", span="cd" * 8, body="HTTP Request: POST /v1/chat") == "no_agent"
    assert placed(name="gen_ai.choice") == "no_agent"


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
