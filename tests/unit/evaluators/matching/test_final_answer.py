from dataclasses import replace

from evaluators.matching.final_answer import gives_up, lacks_answer
from evaluators.model import ModelCall, ToolCall, Trace
from tests.support.evaluating import a_trace
from tests.support.table import for_each

SAID = ModelCall(span_id="m", output="In Oslo.", start_time_unix_nano=1)
ANSWERED = a_trace(input="Where is order 7?", output="In Oslo.", model_calls=(SAID,))
SILENT = replace(ANSWERED, output=None)


def with_last_call(**facts: object) -> Trace:
    call = ToolCall(name="find", start_time_unix_nano=2, **facts)  # pyright: ignore[reportArgumentType]
    return replace(SILENT, tool_calls=(call,))


@for_each(
    "trace,expected",
    [
        (ANSWERED, False),
        (SILENT, True),
        (replace(SILENT, output=" \n"), True),
        # what is not exported is not known
        (replace(SILENT, gaps=("no_content",)), None),
        (replace(SILENT, gaps=("no_root",)), None),
        (replace(SILENT, model_calls=()), None),
        # a hand-over and a refusal end a turn, an approval that it waits for does not
        (with_last_call(result="handed over"), False),
        (with_last_call(error="User rejected it", rejected="user"), False),
        (with_last_call(unanswered=True), None),
        (with_last_call(error="boom"), True),
    ],
)
def test_whether_an_answer_is_missing(trace: Trace, expected: bool | None) -> None:
    assert lacks_answer(trace) is expected


@for_each(
    "answer,expected",
    [
        ("I couldn't find that order.", True),
        ("I\u2019m unable to help with that.", True),
        ("Unfortunately we were not able to reach the store.", True),
        ("I can't access your account.", True),
        ("Something went wrong, please try again later.", True),
        ("In Oslo.", False),
        ("You can find it in the app.", False),
        ("We could meet.", False),
        (None, None),
    ],
)
def test_answers_that_give_up(answer: str | None, expected: bool | None) -> None:
    assert gives_up(replace(ANSWERED, output=answer)) is expected
