"""A trace reads as a conversation: everything once, in order, whatever its history repeats."""

from collections.abc import Sequence
from pathlib import Path

from evaluators.dialects.content.message_model import Call, Message, Result
from evaluators.dialects.read import read_trace
from evaluators.dialects.reading_order import Exchanged, Line, read_exchanged, reading_order
from evaluators.model import AgentStep, ModelCall, ToolCall
from tests.support import api_records as make
from tests.support import made_spans
from tests.support.recordings import pieces
from tests.support.table import for_each

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
LOGS = CAPTURES.with_name("captures_logs")


def user(text: str) -> Message:
    return Message(role="user", text=text)


def assistant(text: str | None = None, *calls: Call) -> Message:
    return Message(role="assistant", text=text, calls=calls)


def model(span: str, start: int, output: str | None = None) -> ModelCall:
    return ModelCall(
        span_id=span, output=output, start_time_unix_nano=start, end_time_unix_nano=start + 1
    )


def said(*messages: Message, after: Sequence[Message] = ()) -> Exchanged:
    return Exchanged(sent=tuple(after), answered=messages)


def spoken(lines: Sequence[Line]) -> list[tuple[str, str | None]]:
    return [(each.speaker, each.call.name if each.call else each.text) for each in lines]


def test_of_a_history_that_grows_only_what_is_new_is_said_again() -> None:
    asks = assistant(None, Call(name="lookup", id="c1", arguments={"city": "Oslo"}))
    found = Message(role="tool", results=(Result(id="c1", content="rain"),))
    sent = (Message(role="system", text="Be kind."), user("Weather?"))
    of = make.trace(
        model_calls=(model("a", 1), model("b", 5)),
        tool_calls=(ToolCall(name="lookup", id="c1", result="rain", start_time_unix_nano=3),),
    )
    last = said(assistant("It rains."), after=(*sent, asks, found))

    lines = reading_order(of, {"a": said(asks, after=sent), "b": last})

    assert spoken(lines) == [
        ("system", "Be kind."),
        ("user", "Weather?"),
        ("assistant", None),
        ("tool", "lookup"),
        ("assistant", "It rains."),
    ]
    assert [each.asks for each in lines] == [False, False, True, False, False]


def test_words_that_are_said_twice_in_one_history_stand_there_twice() -> None:
    sent = (user("Hello?"), assistant("Yes?"), user("Hello?"))
    here = assistant("Still here.")
    of = make.trace(model_calls=(model("a", 1), model("b", 5)), tool_calls=())
    last = said(assistant("Hm."), after=(*sent, here, user("Hello?")))

    lines = reading_order(of, {"a": said(here, after=sent), "b": last})

    words = ["Hello?", "Yes?", "Hello?", "Still here.", "Hello?", "Hm."]
    assert spoken(lines) == [*zip(["user", "assistant"] * 3, words, strict=True)]


def test_what_former_turns_said_is_marked_up_to_the_question() -> None:
    system = Message(role="system", text="Be kind.")
    sent = (system, user("Madrid?"), assistant("Sunny."), user("And"), user("Berlin?"))
    of = make.trace(model_calls=(model("a", 1),), tool_calls=())

    lines = reading_order(of, {"a": said(assistant("Cloudy."), after=sent)})

    assert [each.text for each in lines if each.is_earlier] == ["Madrid?", "Sunny."]


def test_a_call_without_a_line_of_its_own_stands_with_the_answer_that_wants_it() -> None:
    hands_over = assistant(None, Call(name="transfer_to_clerk", arguments={}))
    of = make.trace(input=None, model_calls=(model("a", 1),), tool_calls=())

    (line,) = reading_order(of, {"a": said(hands_over)})

    assert [each.name for each in line.wanted] == ["transfer_to_clerk"]
    assert not line.asks


def test_without_messages_the_answers_and_the_tool_calls_are_left() -> None:
    answers = (model("a", 1, output="It rains."),)
    calls = (ToolCall(name="lookup", start_time_unix_nano=2),)
    of = make.trace(input=None, model_calls=answers, tool_calls=calls)

    assert spoken(reading_order(of, {})) == [("assistant", "It rains."), ("tool", "lookup")]


def test_the_step_of_an_agent_is_read_unless_a_model_said_the_same() -> None:
    steps = (
        AgentStep(span_id="b", agent="Surfer", output="It says 42.", end_time_unix_nano=9),
        AgentStep(span_id="c", agent="Chief", output="42", end_time_unix_nano=10),
    )
    calls = (model("a", 1, output="42"),)
    of = make.trace(input=None, model_calls=calls, tool_calls=(), steps=steps)

    lines = reading_order(of, {})

    assert spoken(lines) == [("assistant", "42"), ("agent", "It says 42.")]
    assert lines[1].agent == "Surfer"


@for_each(
    "stack", ["langgraph_oi", "oai_agents_oi", "pydantic_ai_v5", "agent_framework", "strands"]
)
def test_the_second_turn_of_a_real_session_reads_from_its_question_to_its_answer(
    stack: str,
) -> None:
    """What went before it is marked as earlier, and nothing is listed twice."""
    (trace_id, parts) = list(pieces(CAPTURES / stack / "session.otlp").items())[1]
    trace = read_trace(parts, trace_id=trace_id, closed="root_ended")

    lines = reading_order(trace, read_exchanged(parts, trace_id=trace_id))

    now = [each for each in lines if not each.is_earlier and each.speaker != "system"]
    assert (now[0].speaker, now[0].text) == ("user", trace.input)
    assert now[-1].speaker == "assistant"
    assert (now[-1].text or "").strip() == (trace.output or "").strip()
    assert [each.call for each in now if each.call] == list(trace.tool_calls)
    listed = [(each.speaker, each.text) for each in lines if each.text]
    assert len(listed) == len(set(listed))


def test_a_trace_of_which_no_span_can_be_read_has_no_messages() -> None:
    assert read_exchanged([b"\xff\xff"], trace_id="0" * 32) == {}


def test_a_prompt_that_no_model_call_carries_is_the_first_line() -> None:
    calls = (model("a", 1, output="It rains."),)
    of = make.trace(input="Weather?", root_span_id="r", model_calls=calls, tool_calls=())

    assert spoken(reading_order(of, {})) == [("user", "Weather?"), ("assistant", "It rains.")]
    assert reading_order(of, {})[0].span_id == "r"


@for_each("path", sorted(LOGS.rglob("*.logs.otlp")))
def test_words_that_came_as_log_records_are_said_in_their_place(path: Path) -> None:
    """What a trace was asked and what it answered are lines, whoever sent the words."""
    found = made_spans.pieces(path.parent, path.name.removesuffix(".logs.otlp"))
    for trace_id, own in found.items():
        of = read_trace(own, trace_id=trace_id, closed="idle")
        lines = reading_order(of, read_exchanged(own, trace_id=trace_id))
        now = [each for each in lines if not each.is_earlier]
        asked = [each.text or "" for each in now if each.speaker == "user"]
        answered = [each.text or "" for each in now if each.speaker == "assistant"]

        assert any((of.input or "").strip() in each for each in asked) or not of.input, asked
        assert any((of.output or "").strip() in each for each in answered) or not of.output
