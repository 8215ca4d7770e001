"""Tool calls in the text of a message."""

from evaluators.model import Trace
from tests.support.conventions import ROOT, model, says
from tests.support.dialect_spans import trace_of
from tests.support.weather import ARGUMENTS, RESULT, USER, dump, one_call


def react(text: str, after: str) -> Trace:
    """A step of an agent, and the next one, which is sent `after`."""
    history = [USER, {"role": "assistant", "content": after}]
    return trace_of(
        ROOT,
        model(2, 1, dump([USER]), says(text)),
        model(3, 3, dump(history), says("Final Answer: yes")),
    )


def test_an_action_in_the_text_of_a_react_agent() -> None:
    text = f"Thought: I look.\nAction: get_weather\nAction Input: {dump(ARGUMENTS)}"
    trace = react(text, f"{text}\nObservation: {RESULT}")

    call = one_call(trace)
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_words_about_actions_are_no_call() -> None:
    text = "Write it so:\nAction: name\nAction Input: the arguments"

    assert react(text, text).tool_calls == ()
