"""Prompts and answers that Spring AI 1.x writes with loggers."""

import pytest

from evaluators.dialects.turns.place import AgentEvent
from evaluators.dialects.turns.registry import place_record
from evaluators.model import Trace
from tests.support.agent_records import words
from tests.support.dialect_spans import trace_of
from tests.support.weather import ANSWER, QUESTION

CLIENT = "org.springframework.ai.chat.client.observation.ChatClient"
MODEL = "org.springframework.ai.chat.observation.ChatModel"
PROMPT, COMPLETION = "PromptContentObservationHandler", "CompletionObservationHandler"
SPRING = "org.springframework.boot"


def logged(*records: tuple[str, str]) -> Trace:
    """A client's span, number 1, around a model call, number 2, and records of each by their loggers."""
    client = {"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"}
    return trace_of(
        client,
        {"gen_ai.operation.name": "chat"},
        *(
            words(
                10 + i, "", 8, of=1 if CLIENT in scope else 2, scope=scope, body=f"Words:\n{body}"
            )
            for i, (scope, body) in enumerate(records)
        ),
        scope=SPRING,
    )


def test_a_clients_prompt_and_answer_are_its_spans() -> None:
    trace = logged(
        (CLIENT + PROMPT, f'["system":"Be "kind".", "user":"{QUESTION}"]'),
        (CLIENT + COMPLETION, f'["{ANSWER}"]'),
    )
    assert (trace.input, trace.output, trace.gaps.count("no_content")) == (QUESTION, ANSWER, 0)


def test_texts_have_line_ends_and_quotes_of_their_own() -> None:
    question, answer = 'Say "a",\n"b" and [c]', 'He said "no", \n"never".'
    trace = logged(
        (CLIENT + PROMPT, f'["system":"Be kind.", "user":"{question}"]'),
        (CLIENT + COMPLETION, f'["{answer}"]'),
    )
    assert (trace.input, trace.output) == (question, answer)


def test_a_model_that_is_called_without_a_client_has_its_own() -> None:
    trace = logged(
        (MODEL + PROMPT, f'["Be kind.", "{QUESTION}", "null", ""]'),
        (MODEL + COMPLETION, f'["{ANSWER}"]'),
    )
    assert (trace.input, trace.output) == (QUESTION, ANSWER)


@pytest.mark.parametrize("body", ["[]", "", f'["Be "kind".", "{QUESTION}"]'])
def test_what_cannot_be_distinguished_is_not_lent(body: str) -> None:
    assert logged((MODEL + PROMPT, body), (MODEL + COMPLETION, "[]")).input is None


def test_a_record_stays_in_the_trace_whose_ids_it_carries() -> None:
    def event(scope: str, span_id: str = "b" * 16) -> AgentEvent:
        return AgentEvent(
            name="",
            time_unix_nano=1,
            scope=scope,
            attributes={},
            body="Words:\n[]",
            trace_id="a" * 32,
            span_id=span_id,
        )

    assert place_record(event(CLIENT + PROMPT)) is None
    assert place_record(event("shop.App")) == "no_agent"
    assert place_record(event(CLIENT + PROMPT, span_id="")) == "no_agent"
