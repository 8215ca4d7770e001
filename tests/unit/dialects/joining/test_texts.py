"""The question and the answer of a trace."""

from tests.support.conventions import AGENT, CHAT, asked, call, said
from tests.support.dialect_spans import SpanSpec, trace_of


def test_the_question_is_the_users_last_words_not_the_first() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={**CHAT, "gen_ai.input.messages": asked("hello", "and now?")})
    )

    assert trace.input == "and now?"


def test_a_cut_history_does_not_hide_the_whole_one_further_in() -> None:
    whole = asked("first", "second")
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, "gen_ai.input.messages": whole[:80]}),
        SpanSpec(id=2, parent=1, attributes={**CHAT, "gen_ai.input.messages": whole}, start=1),
    )

    assert (trace.input, trace.truncated) == ("second", True)


def test_the_answer_is_the_last_calls_text_without_tool_calls() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT),
        SpanSpec(
            id=2, parent=1, attributes={**CHAT, "gen_ai.output.messages": said("done")}, start=1
        ),
        SpanSpec(
            id=3,
            parent=1,
            attributes={**CHAT, "gen_ai.output.messages": said("let me save", call("save"))},
            start=5,
        ),
    )

    assert trace.output == "done"


def test_nothing_recorded_is_none_and_named() -> None:
    trace = trace_of(SpanSpec(id=1, attributes={**CHAT, "gen_ai.response.model": "m"}))

    assert (trace.input, trace.output, trace.tokens.input, trace.cost_usd) == (
        None,
        None,
        None,
        None,
    )
    assert set(trace.gaps) == {"no_session", "no_content", "no_tool_definitions"}


def test_a_trace_without_calls_misses_no_tool_definitions() -> None:
    assert "no_tool_definitions" not in trace_of(SpanSpec(id=1)).gaps


def test_a_long_answer_is_capped_and_the_trace_says_so() -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes={**CHAT, "gen_ai.output.messages": said("x" * 200_000)})
    )

    assert (len(trace.output or ""), trace.truncated) == (65_536, True)
    assert "truncated" in trace.gaps
