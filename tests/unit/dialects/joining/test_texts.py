"""The question and the answer of a trace."""

from tests.support.conventions import AGENT, asked, call, model, said
from tests.support.dialect_spans import SpanSpec, trace_of


def test_the_question_is_the_users_last_words_not_the_first() -> None:
    assert trace_of(model(1, 0, asked("hello", "and now?"))).input == "and now?"


def test_a_cut_history_does_not_hide_the_whole_one_further_in() -> None:
    whole = asked("first", "second")
    cut = SpanSpec(id=1, attributes={**AGENT, "gen_ai.input.messages": whole[:80]})
    trace = trace_of(cut, model(2, 1, whole))

    assert (trace.input, trace.truncated) == ("second", True)


def test_the_answer_is_the_last_calls_text_without_tool_calls() -> None:
    saves = model(3, 5, answer=said("let me save", call("save")))

    trace = trace_of(SpanSpec(id=1, attributes=AGENT), model(2, 1, answer=said("done")), saves)

    assert trace.output == "done"


def test_nothing_recorded_is_none_and_named() -> None:
    trace = trace_of(model(1, attributes={"gen_ai.response.model": "m"}, parent=0))

    assert (trace.input, trace.output, trace.tokens.input, trace.cost_usd) == (None,) * 4
    assert set(trace.gaps) == {"no_session", "no_content", "no_tool_definitions"}
    assert "no_tool_definitions" not in trace_of(SpanSpec(id=1)).gaps, (
        "without calls none is missing"
    )


def test_a_long_answer_is_capped_and_the_trace_says_so() -> None:
    trace = trace_of(model(1, answer=said("x" * 200_000)))

    assert (len(trace.output or ""), trace.truncated) == (65_536, True)
    assert "truncated" in trace.gaps
