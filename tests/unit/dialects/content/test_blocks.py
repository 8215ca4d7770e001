"""Tool calls in the text of a message."""

from evaluators.model import Trace
from tests.support.conventions import ROOT, chat, says
from tests.support.dialect_spans import trace_of
from tests.support.weather import ARGUMENTS, QUESTION, RESULT, dump, one_call


def react(text: str, after: str | None = None) -> Trace:
    given = [{"role": "user", "content": QUESTION}]
    spans = [
        ROOT,
        chat(
            2,
            1,
            2,
            attributes={"gen_ai.input.messages": dump(given), "gen_ai.output.messages": says(text)},
        ),
    ]
    if after is not None:
        history = [*given, {"role": "assistant", "content": after}]
        attributes = {
            "gen_ai.input.messages": dump(history),
            "gen_ai.output.messages": says("Final Answer: yes"),
        }
        spans.append(chat(3, 3, 4, attributes=attributes))
    return trace_of(*spans)


def test_an_action_in_the_text_of_a_react_agent() -> None:
    text = f"Thought: I look.\nAction: get_weather\nAction Input: {dump(ARGUMENTS)}"
    trace = react(text, f"{text}\nObservation: {RESULT}")

    call = one_call(trace)
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_words_about_actions_are_no_call() -> None:
    assert react("Write it so:\nAction: name\nAction Input: the arguments").tool_calls == ()
