"""Prompts and answers that Spring AI 1.x writes with loggers."""

from typing import Any

from evaluators.dialects.turns.place import AgentEvent
from evaluators.dialects.turns.registry import place_record
from evaluators.model import Trace
from tests.support.agent_records import words
from tests.support.conventions import CHAT
from tests.support.dialect_spans import trace_of
from tests.support.table import for_each
from tests.support.weather import ANSWER, QUESTION

CLIENT = "org.springframework.ai.chat.client.observation.ChatClient"
MODEL = "org.springframework.ai.chat.observation.ChatModel"
PROMPT, COMPLETION = "PromptContentObservationHandler", "CompletionObservationHandler"
SPRING = "org.springframework.boot"


def logged(logger: str, prompt: str, completion: str) -> Trace:
    """A client's span, number 1, around a model call, number 2, and what one of them logs."""
    client = {"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"}
    of = 1 if logger == CLIENT else 2
    records = (
        words(number, "", 8, of=of, scope=logger + handler, body=f"Words:\n{body}")
        for number, handler, body in ((10, PROMPT, prompt), (11, COMPLETION, completion))
    )
    return trace_of(client, CHAT, *records, scope=SPRING)


SAYS = 'Say "a",\n"b" and [c]', 'He said "no", \n"never".'


@for_each(
    "logger,prompt,question,answer",
    [
        (CLIENT, f'["system":"Be "kind".", "user":"{QUESTION}"]', QUESTION, ANSWER),
        # texts have line ends and quotes of their own
        (CLIENT, f'["system":"Be kind.", "user":"{SAYS[0]}"]', *SAYS),
        # a model that is called without a client has its own
        (MODEL, f'["Be kind.", "{QUESTION}", "null", ""]', QUESTION, ANSWER),
    ],
)
def test_a_prompt_and_an_answer_are_those_of_the_span_that_logs_them(
    logger: str, prompt: str, question: str, answer: str
) -> None:
    trace = logged(logger, prompt, f'["{answer}"]')

    assert (trace.input, trace.output) == (question, answer)
    assert "no_content" not in trace.gaps


@for_each("body", ["[]", "", f'["Be "kind".", "{QUESTION}"]'])
def test_what_cannot_be_distinguished_is_not_lent(body: str) -> None:
    assert logged(MODEL, body, "[]").input is None


@for_each(
    "scope,span_id,place",
    [
        (CLIENT + PROMPT, "b" * 16, None),
        ("shop.App", "b" * 16, "no_agent"),
        (CLIENT + PROMPT, "", "no_agent"),
    ],
)
def test_a_record_stays_in_the_trace_whose_ids_it_carries(
    scope: str, span_id: str, place: str | None
) -> None:
    ids: dict[str, Any] = {"trace_id": "a" * 32, "span_id": span_id}
    event = AgentEvent(
        name="", time_unix_nano=1, scope=scope, attributes={}, body="Words:\n[]", **ids
    )

    assert place_record(event) == place
