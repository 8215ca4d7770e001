"""Titles, guards, grades and notes for the memory are neither question nor answer of the turn."""

import json

from evaluators.model import Trace
from tests.support.conventions import AGENT, asked, call, dump, made, model, ran, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

QUESTION, ANSWER = "Where is order 7?", "It ships today."
TITLE = "Generate a short title for the conversation"


def chat(
    number: int, question: str, answer: str, *, system: str | None = None, parent: int = 1
) -> SpanSpec:
    told = [{"role": "system", "parts": [{"type": "text", "content": system}]}] if system else []
    sent = dump([*told, *json.loads(asked(question))])
    return model(number, number, sent, said(answer), parent=parent, end=number)


def under_an_agent(*calls: SpanSpec) -> Trace:
    return trace_of(SpanSpec(id=1, attributes=AGENT, end=90), *calls)


@for_each("system", [None, "You help customers of a shop."])
@for_each(
    "side",
    [
        chat(9, QUESTION, "Order status", system=TITLE),
        chat(9, f"User: {QUESTION}\nAssistant: {ANSWER}", "Order status", system=TITLE),
        chat(9, f"Answer: {ANSWER}", '{"ok": true}', system="Check the answer. Answer JSON."),
        chat(2, f"<message>{QUESTION}</message>", '{"safe": true}', system="Is it safe? JSON."),
        chat(2, QUESTION, "Order status", system=TITLE),
    ],
)
def test_a_call_about_the_turn_gives_neither_question_nor_answer(
    side: SpanSpec, system: str | None
) -> None:
    trace = under_an_agent(chat(5, QUESTION, ANSWER, system=system), side)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert len(trace.model_calls) == 2, "it still counts, and costs"


def test_a_call_that_goes_on_with_the_conversation_answers() -> None:
    later = chat(6, f"You said: {ANSWER} Really?", "Yes, today.", system="You help.")
    trace = under_an_agent(chat(5, QUESTION, ANSWER, system="You help."), later)

    assert trace.output == "Yes, today."


def test_the_next_agent_of_a_chain_answers_although_it_is_sent_the_answer_before() -> None:
    trace = trace_of(
        SpanSpec(id=1, end=90),
        chat(5, QUESTION, ANSWER, system="You draft."),
        chat(6, f"Edit this: {ANSWER}", "It ships today, dear customer.", system="You edit."),
    )

    assert trace.output == "It ships today, dear customer."


def test_an_agent_below_that_speaks_after_the_answer_does_not_answer() -> None:
    memory = {**AGENT, "gen_ai.agent.name": "memory"}
    trace = under_an_agent(
        chat(2, QUESTION, ANSWER),
        SpanSpec(id=3, parent=1, attributes=memory, start=3, end=5),
        chat(4, "Summarise: asks for orders", "Asks for orders.", parent=3),
    )

    assert trace.output == ANSWER


def test_an_agent_to_which_the_turn_was_handed_over_answers() -> None:
    expert = {**AGENT, "gen_ai.agent.name": "expert"}
    trace = under_an_agent(
        model(2, 2, asked(QUESTION), said("", call("transfer", "c")), end=2),
        ran(3, 3, "transfer", end=3),
        SpanSpec(id=4, parent=1, attributes=expert, start=4, end=9),
        chat(5, QUESTION, ANSWER, system="You are the expert.", parent=4),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


@for_each(
    "key,kind",
    [
        *(("openinference.span.kind", kind) for kind in ("GUARDRAIL", "EVALUATOR")),
        *(("langfuse.observation.type", kind) for kind in ("guardrail", "evaluator")),
    ],
)
def test_what_stands_below_a_guard_or_a_grader_is_about_the_turn(key: str, kind: str) -> None:
    guard, grader = (made(n, n, {key: kind}, end=n + 2) for n in (2, 6))
    trace = trace_of(
        SpanSpec(id=1, end=90),
        guard,
        chat(3, "Is this toxic? hi", "no", parent=2),
        chat(5, "hi", "hello there"),
        grader,
        chat(7, "Rate: hello there", "0.9", parent=6),
    )

    assert (trace.input, trace.output) == ("hi", "hello there")


def test_where_every_call_is_a_side_call_they_are_what_there_is() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={"openinference.span.kind": "GUARDRAIL"}, end=90),
        chat(3, "Is this toxic? hi", "no"),
    )

    assert trace.output == "no"
