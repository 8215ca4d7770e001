"""Which span answers: agents without a model call beneath them do, side calls do not."""

import json
from typing import Any

from evaluators.model import Trace
from tests.support.conventions import AGENT, asked, call, dump, made, model, ran, said, says
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.table import for_each


def agent(id_: int, name: str, text: str | None, **more: Any) -> SpanSpec:
    answer = {} if text is None else {"gen_ai.output.messages": says(text)}
    return made(id_, id_, {**AGENT, "gen_ai.agent.name": name, **answer}, **more)


ROOT = SpanSpec(id=1, name="group chat", end=99)


def test_agents_that_answer_take_steps_in_order() -> None:
    trace = trace_of(
        ROOT, agent(3, "WebSurfer", "I found it."), agent(2, "Orchestrator", "Search.")
    )

    steps = [(step.agent, step.output) for step in trace.steps]
    assert steps == [("Orchestrator", "Search."), ("WebSurfer", "I found it.")]
    assert trace.steps[0].span_id == span_id(2)
    assert trace.is_turn


@for_each(
    "spans,agents",
    [
        # over its model call an agent takes no step of its own
        ([ROOT, agent(2, "writer", "Done."), model(3, 3, parent=2)], []),
        # of agents within each other the inner one takes the step
        ([ROOT, agent(2, "team", "Done."), agent(3, "writer", "Done.", parent=2)], ["writer"]),
        # around a model call it takes none beside the agent without one
        (
            [
                agent(1, "team", "All done.", parent=0),
                agent(2, "writer", "Written."),
                model(3, 3, parent=2),
                agent(4, "critic", "Fine."),
            ],
            ["critic"],
        ),
        ([ROOT, agent(2, "writer", None), agent(3, "critic", "")], []),  # they say nothing
    ],
)
def test_who_takes_a_step(spans: list[SpanSpec], agents: list[str]) -> None:
    trace = trace_of(*spans)

    assert [step.agent for step in trace.steps] == agents
    assert trace.is_turn is bool(agents or trace.model_calls)


def test_an_agent_around_others_that_says_something_else_takes_its_step_after_them() -> None:
    trace = trace_of(
        agent(1, "Orchestrator", "FINAL ANSWER: 42", parent=0),
        agent(2, "WebSurfer", "It says 42."),
        agent(3, "FileSurfer", "The file says 42."),
        agent(4, "team", "The file says 42."),
        agent(5, "writer", "The file  says 42.", parent=4),
    )

    agents = ["WebSurfer", "FileSurfer", "writer", "Orchestrator"]
    assert [step.agent for step in trace.steps] == agents
    assert trace.output == "FINAL ANSWER: 42"


def test_the_last_step_is_the_answer_where_no_other_span_has_one() -> None:
    question = {"gen_ai.input.messages": asked("How far is it?")}
    first = agent(2, "Orchestrator", "Look it up.", attributes=question)

    trace = trace_of(ROOT, first, agent(3, "WebSurfer", "42 km."))

    assert (trace.input, trace.output) == ("How far is it?", "42 km.")
    assert "no_content" not in trace.gaps


def test_words_to_another_agent_are_the_agents_own() -> None:
    """AutoGen gives an agent's words the role of the user, because another agent reads them."""
    words = {"gen_ai.output.messages": asked("Search.")}

    trace = trace_of(ROOT, made(2, 2, AGENT, name="invoke_agent a", attributes=words))

    assert [step.output for step in trace.steps] == ["Search."]


def test_a_step_that_never_ended_ends_when_it_began() -> None:
    (step,) = trace_of(ROOT, agent(2, "writer", "Half a", start=50, end=1)).steps

    assert step.end_time_unix_nano == step.start_time_unix_nano


FLAT = "llm.output_messages.0.message"
WORKFLOW = {"messages": [{"role": "assistant", "content": "$"}]}
EVERY: list[dict[str, str]] = [
    {**AGENT, "gen_ai.output.messages": "$"},
    {**AGENT, "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "$"},
    {"openinference.span.kind": "AGENT", "output.value": "$"},
    {"openinference.span.kind": "AGENT", f"{FLAT}.role": "assistant", f"{FLAT}.content": "$"},
    {"traceloop.span.kind": "agent", "traceloop.entity.output": '"$"'},
    {"traceloop.span.kind": "workflow", "traceloop.entity.output": json.dumps(WORKFLOW)},
    {"langfuse.observation.type": "agent", "langfuse.observation.output": "$"},
    {"mlflow.spanType": '"AGENT"', "mlflow.spanOutputs": '"$"'},
    {"ai.operationId": "ai.generateText", "ai.response.text": "$"},
    {**AGENT, "final_result": "$"},
]
"""An agent's span as each dialect writes it; `$` stands for what it says."""


@for_each("attributes", EVERY)
def test_an_agents_span_of_any_dialect_is_a_step(attributes: dict[str, str]) -> None:
    def saying(id_: int, name: str, text: str) -> SpanSpec:
        own = {key: value.replace("$", text) for key, value in attributes.items()}
        return made(id_, id_, own, name=name)

    trace = trace_of(ROOT, saying(2, "planner", "Search."), saying(3, "surfer", "Found."))

    assert [step.output for step in trace.steps] == ["Search.", "Found."]
    assert (trace.is_turn, trace.output) == (True, "Found.")


def test_a_workflow_that_returns_a_text_is_no_agent() -> None:
    attributes = {"traceloop.span.kind": "workflow", "traceloop.entity.output": '"12 rows"'}

    trace = trace_of(SpanSpec(id=1, name="import.workflow", attributes=attributes))

    assert not trace.is_turn


# --- titles, guards, grades and notes for the memory are neither question nor answer ---------------------------------


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
