"""opencode: the call that names a session answers nobody, and a command's exit code stands in its result."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of, under
from tests.support.table import for_each
from tests.support.weather import dump, one_call

ASK = '"What is the release number?"'
SAID = "It is 4.7.11."


def span(id_: int, operation: str, **own: Any) -> SpanSpec:
    given = under("ai.", operationId=operation, telemetry__functionId="session.llm", **own)
    return SpanSpec(id=id_, parent=99, start=id_, end=id_ + 1, scope="opencode", attributes=given)


def call(id_: int, system: str, answer: str, tokens: int) -> SpanSpec:
    asked = {"role": "user", "content": [{"type": "text", "text": ASK}]}
    messages = dump([{"role": "system", "content": system}, asked])
    usage = {"usage__inputTokens": tokens, "usage__outputTokens": 2}
    said = {"prompt__messages": messages, "response__text": answer}
    return span(id_, "ai.streamText.doStream", **said, **usage)


TITLE = call(1, "You are a title generator. You output ONLY a thread title.", "Releases", 10)
WORK = call(2, "You are opencode.", SAID, 20)


def test_a_title_is_no_answer_but_costs_tokens() -> None:
    both, alone = trace_of(TITLE, WORK), trace_of(TITLE)

    assert (both.output, both.tokens.input) == (SAID, 30)
    assert (alone.output, alone.tokens.input) == (None, 10)


def test_the_quotes_of_the_command_line_are_no_words_of_the_person() -> None:
    assert trace_of(TITLE, WORK).input == ASK.strip('"')


@for_each("code,error", [(1, "no such file"), (0, None)])
def test_a_result_is_the_output_and_its_exit_code_tells_of_failure(
    code: int, error: str | None
) -> None:
    result = {"title": "cat", "metadata": {"exit": code}, "output": "no such file"}
    own = {"name": "bash", "id": "c1", "args": "{}", "result": dump(result)}
    ran = span(3, "ai.toolCall", **{f"toolCall__{key}": value for key, value in own.items()})

    found = one_call(trace_of(WORK, ran))

    assert (found.result, found.error) == ("no such file", error)


def test_the_agent_is_not_called_as_all_its_model_calls_are() -> None:
    assert trace_of(span(4, "ai.streamText"), TITLE).agent == "opencode"
