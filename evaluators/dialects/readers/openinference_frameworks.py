"""Frameworks that OpenInference exports in their own shapes: BeeAI, CrewAI, DSPy, Gemini, Haystack, smolagents."""

import re
from collections.abc import Iterable, Mapping

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS
from evaluators.dialects.content.messages import read_messages, unwrap_container
from evaluators.dialects.content.tools import arguments_of, passed_by_python
from evaluators.dialects.decoding.reprs import read_fields
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON, Tokens

_ROLE = re.compile(r"role='((?:[^'\\]|\\.)+)'")
_ROLE_HEAD = 1_000
"""Characters of a repr in which the role is looked for."""
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
_RESPOND = re.compile(r"\n\nRespond with (?:the corresponding output fields|a JSON object)")
_TOOL = re.compile(
    r"^[ \t]*\(\d+\) (\w+), whose description is <desc>(.*?)(</desc>|\Z)", re.MULTILINE | re.DOTALL
)
_FAILED = ("Failed to execute: ", "Execution error in ")
"""How its ReAct reports to the model that a tool raised."""
GEMINI_HISTORY = "automatic_function_calling_history"


# --- what is around a tool's arguments ---------------------------------------------------------------------------


def passed_arguments(scope: str, value: JSON) -> JSON:
    """The arguments of a tool, without what its framework passes around them. The last word of `scope` names it."""
    framework = _LAST_WORD.findall(scope)[-1:]
    inner = arguments_of(value)
    item = as_dict(inner)
    if framework == ["beeai"] and item.keys() == {"input", "options"}:
        return item["input"]
    if framework in _IN_PYTHON and "kwargs" in item and item.keys() <= _PASSED:
        return passed_by_python(inner)
    if framework == ["crewai"] and "calling" in item and "tool_string" in item:
        return _of_crew(item)
    return inner


_LAST_WORD = re.compile(r"[a-z_0-9]+")
_IN_PYTHON = (["dspy"], ["llama_index"], ["smolagents"])
_PASSED = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})


def _of_crew(item: dict[str, JSON]) -> JSON:
    calling = unwrap(item["calling"])
    parsed = read_fields(calling) if isinstance(calling, str) else as_dict(calling)
    return as_dict(parsed.get("arguments")) or None


# --- CrewAI -----------------------------------------------------------------------------------------------------------


def crew_question(attributes: Mapping[str, JSON]) -> JSON:
    """The question of a crew: its inputs, else its only task. Newer versions write them as `input.value`."""
    inputs = as_dict(unwrap(attributes.get("crew_inputs")))
    if inputs:
        return inputs
    tasks = [as_dict(task) for task in as_list(unwrap(attributes.get("crew_tasks")))]
    return tasks[0].get("description") if len(tasks) == 1 else None


def crew_tools(attributes: Mapping[str, JSON]) -> JSON:
    agents = [as_dict(agent) for agent in as_list(unwrap(attributes.get("crew_agents")))]
    return [name for agent in agents for name in as_list(agent.get("tools_names"))]


def crew_role(attributes: Mapping[str, JSON]) -> str | None:
    """The role of the agent that does a task, from the repr that older versions export of it."""
    raw = string(attributes.get("input.value"))
    found = _ROLE.search(raw[:_ROLE_HEAD]) if raw is not None else None
    return found.group(1) if found is not None else None


# --- DSPy's ReAct: calls and results are as marked fields in the texts of its messages ------------------------------


def _fields(text: str) -> dict[str, str]:
    """The marked fields of one text, in order; empty when it has none."""
    marks = [*_FIELD.finditer(text)]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {m.group(1): text[m.end() : end].strip() for m, end in zip(marks, ends, strict=False)}


def expand_dspy(messages: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    return [part for message in messages for part in _parts(message)]


def _parts(message: dict[str, JSON]) -> Iterable[dict[str, JSON]]:
    text = message.get("content")
    if not isinstance(text, str) or ("[[ ## " not in text and "next_tool_name" not in text):
        yield message
    elif message.get("role") == "assistant":
        stated = _fields(text) or as_dict(unwrap(text))
        name = string(stated.get("next_tool_name"))
        whole = name is not None and "next_tool_args" in stated  # else the name itself may be cut
        calls = [_call(name, stated["next_tool_args"])] if name and whole else []
        yield {**message, "tool_calls": calls} if calls else message
    else:
        yield message
        if message.get("role") == "user":
            yield from _trajectory(_fields(_RESPOND.split(text)[0]))


def _trajectory(stated: dict[str, str]) -> Iterable[dict[str, JSON]]:
    for key, name in stated.items():
        if not key.startswith("tool_name_") or f"observation_{key[10:]}" not in stated:
            continue
        call = _call(name, stated.get(f"tool_args_{key[10:]}"))
        observation = stated[f"observation_{key[10:]}"]
        yield {"role": "assistant", "tool_calls": [call]}
        yield {
            "role": "tool",
            "name": name,
            "content": observation,
            "is_error": observation.startswith(_FAILED),
        }


def _call(name: str, arguments: JSON) -> JSON:
    return {"type": "tool_call", "name": name, "arguments": unwrap(arguments)}


def dspy_tools(messages: JSON) -> JSON:
    for message in as_list(messages)[:1]:
        text = string(as_dict(message).get("content")) or ""
        return [
            {"name": name, "description": description.strip()}
            for name, description, end in _TOOL.findall(text)
            if end and name != "finish"
        ]
    return []


# --- transcripts: one span holds several model calls and the tools between them ---------------------------------------


def _this_run(items: JSON) -> list[JSON]:
    """The messages after the user's last words; what is before them belongs to former turns."""
    messages = as_list(items)
    for index in range(len(messages) - 1, -1, -1):
        if any(m.role == "user" and m.text for m in read_messages([messages[index]], "input")):
            return messages[index + 1 :]
    return messages


def gemini_run(raw: JSON) -> JSON:
    answer = as_dict(unwrap(raw))
    stated = [as_dict(entry).get("content") for entry in as_list(answer.get("candidates"))[:1]]
    return [*_this_run(answer.get(GEMINI_HISTORY)), *stated]


def haystack_run(raw: JSON) -> list[JSON]:
    answer = as_dict(unwrap(raw))
    return _this_run([unwrap_container(item) for item in as_list(answer.get("messages"))])


def haystack_tokens(raw: JSON, run: list[JSON]) -> Tokens:
    """The Agent's own sum; in versions without it, the sum over its model's answers."""
    stated = usage.read_usage_object(as_dict(unwrap(raw)).get("token_usage"))
    if stated is not NO_TOKENS:
        return stated
    counts = [_counts_of(item) for item in run]
    known = [tokens for tokens in counts if tokens is not NO_TOKENS]
    if not known:
        return NO_TOKENS
    return Tokens(
        input=sum(tokens.input or 0 for tokens in known),
        output=sum(tokens.output or 0 for tokens in known),
    )


def _counts_of(item: JSON) -> Tokens:
    return usage.read_usage_object(as_dict(as_dict(item).get("meta")).get("usage"))
