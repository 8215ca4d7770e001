"""Only text is text: bytes, pictures and files are not words, refusals are, an answer's own JSON is not a message."""

import json
from typing import Any

from evaluators.model import Trace
from tests.support.conventions import CHAT, ROOT, model, says
from tests.support.dialect_spans import trace_of, under
from tests.support.table import for_each
from tests.support.weather import ARGUMENTS, RESULT, USER, dump, one_call

BYTES = "iVBORw0KGgo" * 20
MEDIA: dict[str, dict[str, Any]] = {
    "[image]": {"type": "blob", "modality": "image", "mime_type": "image/png", "content": BYTES},
    "[image] by its media type": {"type": "binary", "media_type": "image/png", "content": BYTES},
    "[image] of OpenAI": {"type": "input_image", "image_url": "data:image/png;base64," + BYTES},
    "[image] of Gemini": {"inline_data": {"mime_type": "image/png", "data": BYTES}},
    "[audio]": {"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}},
    "[video]": {"type": "uri", "modality": "video", "uri": "https://x/y.mp4"},
    "[file]": {"type": "file", "modality": "document", "file_id": "file-1", "content": BYTES},
}
TEXT = {"type": "text", "content": "What is this?"}


def chat(**messages: Any) -> Trace:
    sides = {f"gen_ai.{side}.messages": json.dumps(value) for side, value in messages.items()}
    return trace_of({**CHAT, **sides})


@for_each("key", ["parts", "content"])
@for_each("kind", MEDIA)
def test_what_is_no_text_gives_a_word_where_there_is_no_text(kind: str, key: str) -> None:
    part = MEDIA[kind]

    def asked(*parts: dict[str, Any]) -> str | None:
        return chat(input=[{"role": "user", key: [*parts]}]).input

    assert asked(part, TEXT) == asked(TEXT, part) == "What is this?"
    assert asked(part) == kind.partition("]")[0] + "]"


def test_a_picture_or_a_compaction_beside_the_answer_is_not_in_it() -> None:
    for beside in (MEDIA["[image]"], {"type": "compaction", "content": "Earlier: x"}):
        parts = [beside, {"type": "text", "content": "Seven."}]
        assert chat(output=[{"role": "assistant", "parts": parts}]).output == "Seven."


def test_parts_that_were_encoded_into_a_text_are_unpacked() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:" + BYTES}}
    inner = [{"type": "text", "text": "Describe it"}, picture]
    part = {"type": "text", "content": json.dumps(inner)}
    assert chat(input=[{"role": "user", "parts": [part]}]).input == "Describe it"


REFUSAL = {"refusal": "I cannot."}


@for_each("content", [None, "", []])
@for_each("refusal", [REFUSAL, {"additional_kwargs": REFUSAL}])
def test_a_refusal_is_the_answer(content: Any, refusal: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": content, **refusal}

    assert chat(output=[message]).output == "I cannot."
    assert chat(output={"choices": [{"message": message}]}).output == "I cannot."


@for_each(
    "answer",
    [
        {"content": {"title": "T", "body": "B"}},
        {"parts": [{"sku": 1}, {"sku": 2}]},
        [{"name": "Ann", "role": "user"}, {"name": "Bo", "role": "admin"}],
        [{"name": "Ann", "role": "user", "email": "a@example.org"}],
        [{"type": "text", "name": "Ann"}, {"type": "text", "name": "Bo"}],
    ],
)
def test_an_answer_that_looks_like_messages_is_itself(answer: Any) -> None:
    sides = {"type": "span", "input": "hello", "output": json.dumps(answer)}

    output = trace_of(under("langfuse.observation.", **sides)).output

    assert json.loads(output or "null") == answer


@for_each(
    "hidden",
    [
        {"role": "assistant", "content": None},
        {"role": "assistant", "finish_reason": "stop"},
        {"role": "assistant", "parts": []},
        {"role": "assistant", "content": "__REDACTED__"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        {"content": {"type": "thinking", "thinking": "hm"}},
        {"role": "assistant", "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"parts": [{"text": "hm", "thought": True}]},
    ],
)
def test_a_message_without_words_is_no_answer(hidden: dict[str, Any]) -> None:
    assert chat(output=[hidden]).output is None


# --- calls of tools in a text ----------------------------------------------------------------------------------------


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
