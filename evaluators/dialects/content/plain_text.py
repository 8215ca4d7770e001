"""The question or the answer in an object that is no conversation: `{"question": ...}`, `{"kwargs": {...}}`."""

from __future__ import annotations

from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON

_KEYS = {
    "input": (
        "question",
        "query",
        "query_str",
        "q",
        "user_input",
        "user_message",
        "user_prompt",
        "new_message",
        "task",
        "prompt",
        "input",
        "inputs",
        "message",
        "user_msg",
        "str_or_query_bundle",
        "text",
        "topic",
        "kwargs",
        "input_args",
        "args",
        "input_message",
        "input_content",
        "data",
    ),
    "output": (
        "answer",
        "final_answer",
        "final_output",
        "raw",
        "output",
        "outputs",
        "response",
        "reply",
        "result",
        "completion",
        "text",
        "content",
        "message",
        "data",
    ),
}
_DEPTH = 6


def plain_text(value: JSON, side: str, depth: int = 0) -> str | None:
    """The text under a key of that meaning, else the only text there is; None when it would be a guess."""
    if isinstance(value, str):
        inner = unwrap(value) if depth else value
        return string(value) if isinstance(inner, str) else plain_text(inner, side, depth + 1)
    if depth > _DEPTH:
        return None
    if isinstance(value, list):
        items = as_list(value)
        return plain_text(items[0], side, depth + 1) if len(items) == 1 else None
    item = as_dict(value)
    for key in _KEYS["input" if side == "input" else "output"]:
        if key in item and (text := plain_text(item[key], side, depth + 1)):
            return text
    texts = [text for text in map(string, item.values()) if text]
    return texts[0] if len(texts) == 1 and len(item) == 1 else None
