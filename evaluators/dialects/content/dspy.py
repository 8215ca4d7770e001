"""DSPy's ReAct: tool calls and their results stand as marked fields in the texts of its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
_RESPOND = re.compile(r"\n\nRespond with (?:the corresponding output fields|a JSON object)")
_TOOL = re.compile(
    r"^\s*\(\d+\) (\w+), whose description is <desc>(.*?)</desc>", re.MULTILINE | re.DOTALL
)
_FAILED = ("Failed to execute: ", "Execution error in ")
"""How its ReAct tells the model that a tool raised."""


def fields_of(text: str) -> dict[str, str]:
    """The marked fields of one text, in order; empty when it has none."""
    marks = [*_FIELD.finditer(text)]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {m.group(1): text[m.end() : end].strip() for m, end in zip(marks, ends, strict=False)}


def expand(messages: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The messages with the tool calls that an answer asks for, and those that a trajectory tells of."""
    return [part for message in messages for part in _parts(message)]


def _parts(message: dict[str, JSON]) -> Iterable[dict[str, JSON]]:
    text = message.get("content")
    if not isinstance(text, str) or ("[[ ## " not in text and "next_tool_name" not in text):
        yield message
    elif message.get("role") == "assistant":
        said = fields_of(text) or as_dict(unwrap(text))
        name = string(said.get("next_tool_name"))
        whole = name is not None and "next_tool_args" in said  # else the name itself may be cut
        asked = [_call(name, said["next_tool_args"])] if name and whole else []
        yield {**message, "tool_calls": asked} if asked else message
    else:
        yield message
        if message.get("role") == "user":
            yield from _trajectory(fields_of(_RESPOND.split(text)[0]))


def _trajectory(said: dict[str, str]) -> Iterable[dict[str, JSON]]:
    for key, name in said.items():
        if not key.startswith("tool_name_") or f"observation_{key[10:]}" not in said:
            continue
        call = _call(name, said.get(f"tool_args_{key[10:]}"))
        seen = said[f"observation_{key[10:]}"]
        yield {"role": "assistant", "tool_calls": [call]}
        yield {"role": "tool", "name": name, "content": seen, "is_error": seen.startswith(_FAILED)}


def _call(name: str, arguments: JSON) -> JSON:
    return {"type": "tool_call", "name": name, "arguments": unwrap(arguments)}


def tools_in_prompt(messages: JSON) -> JSON:
    """The tools that ReAct describes to the model, by name and description."""
    for message in as_list(messages)[:1]:
        text = string(as_dict(message).get("content")) or ""
        return [
            {"name": name, "description": description.strip()}
            for name, description in _TOOL.findall(text)
            if name != "finish"
        ]
    return []
