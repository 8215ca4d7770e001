"""opencode: the call that names a session answers nobody, and a command's exit code stands in its result."""

import json
from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import one_call

ASK = '"What is the release number?"'


def span(id_: int, operation: str, **attributes: Any) -> SpanSpec:
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    return SpanSpec(
        id=id_,
        parent=99,
        start=id_,
        end=id_ + 1,
        scope="opencode",
        attributes={"ai.operationId": operation, "ai.telemetry.functionId": "session.llm", **given},
    )


def call(id_: int, system: str, answer: str, tokens: int) -> SpanSpec:
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": [{"type": "text", "text": ASK}]},
    ]
    return span(
        id_,
        "ai.streamText.doStream",
        ai__prompt__messages=json.dumps(messages),
        ai__response__text=answer,
        ai__usage__inputTokens=tokens,
        ai__usage__outputTokens=2,
    )


TITLE = call(1, "You are a title generator. You output ONLY a thread title.", "Releases", 10)
WORK = call(2, "You are opencode.", "It is 4.7.11.", 20)


def test_a_title_is_no_answer_but_costs_tokens() -> None:
    both, alone = trace_of(TITLE, WORK), trace_of(TITLE)

    assert (both.output, both.tokens.input) == ("It is 4.7.11.", 30)
    assert (alone.output, alone.tokens.input) == (None, 10)


def test_the_quotes_of_the_command_line_are_no_words_of_the_person() -> None:
    assert trace_of(TITLE, WORK).input == "What is the release number?"


def test_a_result_is_the_output_and_its_exit_code_tells_of_failure() -> None:
    def ran(exit_code: int) -> SpanSpec:
        result = {"title": "cat", "metadata": {"exit": exit_code}, "output": "no such file"}
        return span(
            3,
            "ai.toolCall",
            ai__toolCall__name="bash",
            ai__toolCall__id="c1",
            ai__toolCall__args="{}",
            ai__toolCall__result=json.dumps(result),
        )

    failed, done = (one_call(trace_of(WORK, ran(code))) for code in (1, 0))

    assert (failed.result, failed.error) == ("no such file", "no such file")
    assert (done.result, done.error) == ("no such file", None)


def test_the_agent_is_not_called_as_all_its_model_calls_are() -> None:
    assert trace_of(span(4, "ai.streamText"), TITLE).agent == "opencode"
