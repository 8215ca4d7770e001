"""Question and answer that stand on the top span are read, whoever wrote them there, whether or not its parent came."""

from typing import Any

from tests.support.conventions import asked, model, said
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.table import for_each

QUESTION, ANSWER = "What is 3+4?", "It is 7."
LANGFUSE = {"langfuse.observation.type": "span"}
SIDES = {"langfuse.observation.input": QUESTION, "langfuse.observation.output": ANSWER}


def inner(number: int, question: str, answer: str) -> SpanSpec:
    return model(number, number, asked(question), said(answer))


CALLS = (inner(2, f"Classify: {QUESTION}", "math"), inner(3, f"math: {QUESTION}", '{"result": 7}'))


@for_each(
    "attributes",
    [
        SIDES,
        {"langfuse.trace.input": QUESTION, "langfuse.trace.output": ANSWER},
        {"input.value": QUESTION, "output.value": ANSWER},
        {"langfuse.observation.input": f'{{"question": "{QUESTION}"}}', "output.value": ANSWER},
    ],
)
@for_each("scope", ["my-app", "litellm", "ai.koog"])
def test_what_a_program_stamps_on_its_own_root_is_read(
    attributes: dict[str, Any], scope: str
) -> None:
    trace = trace_of(SpanSpec(id=1, scope=scope, attributes=attributes, end=9), *CALLS)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_what_is_stamped_on_a_model_call_or_a_tool_is_not_the_turns() -> None:
    stamp = {"input.value": "template", "output.value": "{}"}
    stamped = model(2, 2, asked(QUESTION), said(ANSWER), attributes=stamp)
    trace = trace_of(SpanSpec(id=1, end=9), stamped)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


@for_each("flags", [0, 0x100])
@for_each("mark", [None, "as_root", "is_app_root"])
def test_the_one_span_above_all_others_is_read_where_its_parent_never_comes(
    flags: int, mark: str | None
) -> None:
    marked = {f"langfuse.internal.{mark}": True} if mark else {}
    top = SpanSpec(id=1, parent=99, flags=flags, attributes={**LANGFUSE, **SIDES, **marked}, end=9)

    trace = trace_of(top, *CALLS)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    expected = ("local", span_id(1)) if mark else ("missing", None)
    assert (trace.root, trace.root_span_id) == expected
    assert ("no_root" in trace.gaps) is (mark is None)


def test_of_two_spans_without_their_parents_none_is_above_the_other() -> None:
    tops = (
        SpanSpec(id=1, parent=98, attributes={**LANGFUSE, **SIDES}, end=9),
        SpanSpec(id=5, parent=99, attributes=LANGFUSE, start=5, end=9),
    )

    assert trace_of(*tops, *CALLS).output == '{"result": 7}'
