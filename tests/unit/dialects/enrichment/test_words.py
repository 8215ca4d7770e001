"""Words that come as log records are read as if their span had carried them, whichever came first."""

import json
from dataclasses import replace
from typing import Any

from evaluators.dialects.enrichment.enrich import ENRICHERS
from evaluators.dialects.turns.place import AgentEvent
from evaluators.dialects.turns.registry import LOG_AGENTS, place_record
from evaluators.digest import trace_digest
from evaluators.model import Trace
from tests.support.agent_records import words
from tests.support.conventions import AGENT, CHAT, asked, says
from tests.support.dialect_spans import SpanSpec, changed, span_id, trace_of
from tests.support.service import ROOT
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call

MODEL = {**CHAT, "gen_ai.request.model": "gpt-4o-mini"}
ROOT_SPAN = SpanSpec(id=1, name="invoke_agent", end=9, attributes=AGENT)
FIRST = SpanSpec(id=2, parent=1, start=1, end=2, attributes=MODEL)
SECOND = SpanSpec(id=3, parent=1, start=3, end=4, attributes=MODEL)
TOOL = {"id": "c1", "function": {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)}}
USER = ("gen_ai.user.message", {"content": QUESTION})
ASKS = ("gen_ai.choice", {"message": {"role": "assistant", "tool_calls": [TOOL]}})
BEFORE = (
    ("gen_ai.user.message", {"content": "Hello."}),
    ("gen_ai.assistant.message", {"content": "Hello. What may I do?"}),
)
HISTORY = (
    *BEFORE,
    USER,
    ("gen_ai.assistant.message", {"tool_calls": [TOOL]}),
    ("gen_ai.tool.message", {"id": "c1", "content": RESULT}),
)
SAYS = ("gen_ai.choice", {"message": {"role": "assistant", "content": ANSWER}})
EVENTS = {2: (*BEFORE, USER, ASKS), 3: (*HISTORY, SAYS)}
RECORDS = tuple(
    words(10 * of + i, name, 2 * of - 3 + i, of=of, body=body)
    for of, events in EVENTS.items()
    for i, (name, body) in enumerate(events)
)
IN_JSON = tuple(
    words(10 * of + 9 - i, name, 5, of=of, body=dump(body), CHAT_MESSAGE_INDEX=i, event__name=name)
    for of, events in EVENTS.items()
    for i, (name, body) in enumerate(events)
)
"""As Semantic Kernel sends them, in any order."""
DETAILS = "gen_ai.client.inference.operation.details"


def as_events(span: SpanSpec) -> SpanSpec:
    return replace(span, events=EVENTS[span.id])


def without_digest(trace: Trace) -> Trace:
    """The trace but for its digest, which tells records from spans."""
    return replace(trace, digest="")


@for_each("records", [RECORDS, IN_JSON])
def test_records_read_word_by_word_as_the_events_of_their_spans(
    records: tuple[SpanSpec, ...],
) -> None:
    lent = trace_of(ROOT_SPAN, FIRST, SECOND, *records)

    carried = trace_of(ROOT_SPAN, as_events(FIRST), as_events(SECOND))
    assert without_digest(lent) == without_digest(carried)
    assert (lent.input, lent.output, one_call(lent).result) == (QUESTION, ANSWER, RESULT)


def test_details_read_word_by_word_as_the_attributes_of_their_span() -> None:
    details: dict[str, Any] = {
        "gen_ai.input.messages": json.loads(asked(QUESTION)),
        "gen_ai.output.messages": json.loads(says()),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    carried = trace_of(ROOT_SPAN, changed(FIRST, **details))

    wordings: tuple[dict[str, Any], ...] = (details, {"body": details})
    for given in wordings:
        record = words(9, DETAILS, 2, of=2, **given)
        lent = trace_of(ROOT_SPAN, FIRST, record)

        assert without_digest(lent) == without_digest(carried)
        assert (lent.input, lent.output, lent.tokens.input) == (QUESTION, ANSWER, 7)


def test_what_a_span_says_itself_wins() -> None:
    other: dict[str, Any] = {"gen_ai.request.model": "another", "gen_ai.usage.input_tokens": 7}

    trace = trace_of(ROOT_SPAN, FIRST, words(9, DETAILS, 2, of=2, **other))

    assert (trace.models, trace.tokens.input) == (("gpt-4o-mini",), 7)


def test_the_digest_names_the_records_that_lent_words() -> None:
    spans = [span_id(each) for each in (1, 2, 3)]
    records = [span_id(spec.id) for spec in RECORDS]

    assert trace_of(ROOT_SPAN, FIRST, SECOND).digest == trace_digest(spans)
    assert trace_of(ROOT_SPAN, FIRST, SECOND, *RECORDS).digest == trace_digest(spans, records)
    assert trace_of(ROOT_SPAN, FIRST, SECOND, *RECORDS[1:]).digest == trace_digest(
        spans, records[1:]
    )


def test_records_are_no_spans_of_the_trace() -> None:
    trace = trace_of(ROOT_SPAN, FIRST, SECOND, *RECORDS)

    assert (trace.spans, trace.root, trace.root_span_id) == (3, "parentless", span_id(1))


def test_words_whose_span_has_not_come_are_one_model_call() -> None:
    """Until it comes, when they are its words."""
    before = trace_of(ROOT_SPAN, FIRST, *RECORDS)
    after = trace_of(ROOT_SPAN, FIRST, SECOND, *RECORDS)

    assert len(before.model_calls) == len(after.model_calls) == 2
    assert before.output == after.output == ANSWER


def test_a_record_without_words_says_nothing_of_a_call() -> None:
    record = words(9, "", 2, of=2, body="HTTP Request: POST /v1/chat/completions", scope="httpx")

    trace = trace_of(ROOT_SPAN, FIRST, record)

    assert (len(trace.model_calls), trace.input, trace.output) == (1, None, None)


def test_every_agent_that_speaks_in_logs_has_a_lender() -> None:
    named = {agent.name for agent in LOG_AGENTS if agent.scopes}

    assert named == set(ENRICHERS)


# --- bodies of legacy message events of Bedrock, google-genai and Vertex AI ------------------------------------------


Bodies = list[tuple[str, Any]]
"""Event after `gen_ai.`, and body; of one model call."""
LEGACY: dict[str, tuple[Bodies, Bodies]] = json.loads(
    (ROOT / "tests/data/dialects/legacy_events.json").read_text()
)
"""SDK -> what it writes of a call that asks for the tool, and of one that answers."""


def records(call: int, at: int, bodies: Bodies) -> list[SpanSpec]:
    return [
        words(10 * call + number, f"gen_ai.{event}", at + number, of=call, body=body)
        for number, (event, body) in enumerate(bodies)
    ]


@for_each("sdk", LEGACY)
def test_question_answer_call_and_result_are_read(sdk: str) -> None:
    asks, answers = LEGACY[sdk]

    trace = trace_of(
        replace(ROOT_SPAN, end=900),
        replace(FIRST, start=100, end=200),
        *records(2, 110, asks),
        replace(SECOND, start=300, end=400),
        *records(3, 310, answers),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.name, call.arguments) == ("get_weather", ARGUMENTS)
    assert RESULT in str(call.result)


# --- prompts and answers that Spring AI 1.x writes with loggers ------------------------------------------------------


CLIENT = "org.springframework.ai.chat.client.observation.ChatClient"
MODEL_LOGGER = "org.springframework.ai.chat.observation.ChatModel"
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


SAYS_ITSELF = 'Say "a",\n"b" and [c]', 'He said "no", \n"never".'


@for_each(
    "logger,prompt,question,answer",
    [
        (CLIENT, f'["system":"Be "kind".", "user":"{QUESTION}"]', QUESTION, ANSWER),
        # texts have line ends and quotes of their own
        (CLIENT, f'["system":"Be kind.", "user":"{SAYS_ITSELF[0]}"]', *SAYS_ITSELF),
        # a model that is called without a client has its own
        (MODEL_LOGGER, f'["Be kind.", "{QUESTION}", "null", ""]', QUESTION, ANSWER),
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
    assert logged(MODEL_LOGGER, body, "[]").input is None


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
