"""The tools that a model was offered, and the arguments and results of their calls, in every provider's wrapping."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from evaluators.dialects.content.blocks import read_content
from evaluators.dialects.content.hosted_tools import offered_name
from evaluators.dialects.content.messages import read_messages
from evaluators.dialects.decoding.reprs import read_repr
from evaluators.dialects.decoding.values import as_dict, as_list, is_mask, string, unwrap
from evaluators.model import JSON, ToolDefinition

_SCHEMAS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parameters_json_schema",
    "json_schema",
    "parametersJsonSchema",
    "schema",
)
_NESTED = ("function_declarations", "functionDeclarations", "tools", "function_tools")


def read_definitions(value: JSON) -> tuple[ToolDefinition, ...]:
    """The definitions in a list of tools (or one, or a mapping by name); empty when there is none."""
    return tuple(_read(unwrap(value), 0))


def _read(value: JSON, depth: int) -> Iterable[ToolDefinition]:
    if depth > 6:
        return
    if isinstance(value, list):
        for item in as_list(value):
            yield from _read(unwrap(item), depth + 1)
    elif isinstance(value, str):
        parsed = read_repr(value)
        if isinstance(parsed, dict):
            yield from _read_object(as_dict(parsed), depth)
        elif name := string(value):
            yield ToolDefinition(name=name)
    elif isinstance(value, dict):
        yield from _read_object(as_dict(value), depth)


def _read_object(item: dict[str, JSON], depth: int) -> Iterable[ToolDefinition]:
    for key in _NESTED:
        if isinstance(item.get(key), list):
            yield from _read(item[key], depth + 1)
            return
    inner = as_dict(item.get("function")) or as_dict(item.get("toolSpec")) or item
    name = string(inner.get("name")) or string(as_dict(inner.get("metadata")).get("name"))
    if name is not None:
        yield ToolDefinition(
            name=name, description=string(inner.get("description")), parameters=_schema(inner)
        )
    elif hosted := offered_name(item):
        yield ToolDefinition(name=hosted)
    elif item and all(isinstance(entry, dict) for entry in item.values()):
        for key, entry in sorted(item.items()):
            yield from _read({"name": key, **as_dict(entry)}, depth + 1)


def _schema(item: dict[str, JSON]) -> JSON:
    for key in _SCHEMAS:
        schema = unwrap(item.get(key))
        if isinstance(schema, dict) and schema:
            known = as_dict(as_dict(schema).get("json")) or as_dict(schema)  # Bedrock nests it
            return None if any(map(is_mask, as_list(known.get("required")))) else known
    return None


def tools_in_request(value: JSON) -> tuple[ToolDefinition, ...]:
    """The tools that stand beside the messages of a whole request, or among them as Langfuse writes them."""
    value = unwrap(value)
    if isinstance(value, list):
        return tuple(_read([_as_tool(entry) for entry in as_list(value)], 0))
    item = as_dict(value)
    for source in (item, as_dict(item.get("config")), as_dict(item.get("kwargs"))):
        for key in ("tools", "functions", "model_request_parameters", "toolConfig"):
            if isinstance(source.get(key), list | dict):
                return read_definitions(source[key])
    return ()


def _as_tool(entry: JSON) -> JSON:
    message = as_dict(entry)
    inner = as_dict(message.get("content"))
    return (
        inner
        if message.get("role") == "tool" and ("function" in inner or "name" in inner)
        else None
    )


# --- arguments and results of tool spans -----------------------------------------------------------------------------

_WRAPPED = (
    "tool_call_id",
    '"lc"',
    '"output"',
    '"outputs"',
    "ToolMessage",
    '"toolResult"',
    '"isError"',
    '"raw_output"',
)
_HEAD = 2_048
"""Where a wrapping shows itself: a result is only parsed when its first characters hint at one."""


def arguments_of(value: JSON) -> JSON:
    """The arguments a tool was called with, as they were recorded; None when none were.

    Whatever its keys are called, an object is the tool's own: a dialect that puts another one around it takes it off.
    """
    inner = unwrap(value)
    return None if inner == "" else inner


def passed_by_python(value: JSON) -> JSON:
    """The arguments in `{"args", "kwargs"}`, as decorators write what a Python function was called with."""
    item = as_dict(unwrap(value))
    kwargs, args = as_dict(item.get("kwargs")), as_list(item.get("args"))
    if kwargs or not args:
        return kwargs
    return args[0] if len(args) == 1 else args


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result, and the id, failure and name that its wrapping states."""

    result: JSON = None
    id: str | None = None
    is_error: bool = False
    name: str | None = None
    """The tool's name, where its answer states it."""


_NOTHING = ToolOutcome()


def outcome_of(value: JSON) -> ToolOutcome:
    """The result in a tool span's output. A plain text is never parsed, however long it is."""
    if value is None:
        return _NOTHING
    if not isinstance(value, str):
        return _from_object(value)
    if value[:1] == '"':
        inner = unwrap(value)
        return ToolOutcome(result=inner) if isinstance(inner, str) else outcome_of(inner)
    if value[:1] in ("{", "[") and _may_be_wrapped(value):
        return _from_object(unwrap(value), raw=value)
    return ToolOutcome(result=value or None)


def _of_mcp(item: dict[str, JSON]) -> ToolOutcome:
    """An MCP server's answer to tools/call."""
    text = read_content(item["content"]).text
    return ToolOutcome(
        result=text if text is not None else item["content"], is_error=item["isError"]
    )


def _may_be_wrapped(text: str) -> bool:
    if len(text) > _HEAD:
        text = text[:_HEAD] + "\n" + text[-_HEAD:]
    if not ("ool" in text or "utput" in text or '"isError"' in text or '"lc"' in text):
        return False  # parts of all marks, four searches instead of eight
    return any(mark in text for mark in _WRAPPED)


def _of_llama_index(item: dict[str, JSON]) -> ToolOutcome:
    """LlamaIndex's ToolOutput, which also has the tool's name."""
    text = read_content(item.get("blocks") or item.get("content")).text
    raw = item["raw_output"]
    return ToolOutcome(
        result=raw if raw is not None else text,
        is_error=item.get("is_error") is True,
        name=item["tool_name"],
    )


def _from_object(value: JSON, raw: str | None = None) -> ToolOutcome:
    item = as_dict(value)
    if isinstance(item.get("isError"), bool) and isinstance(item.get("content"), list):
        return _of_mcp(item)
    if "raw_output" in item and isinstance(item.get("tool_name"), str):
        return _of_llama_index(item)
    # LlamaIndex's workflow step.
    if "tool_id" in item and isinstance(item.get("tool_output"), dict):
        inner = _from_object(item["tool_output"])
        return msgspec.structs.replace(inner, id=inner.id or string(item["tool_id"]))
    results = [r for m in read_messages(value, "output") for r in m.results] if value else []
    if results:
        last = results[-1]
        return ToolOutcome(result=last.content, id=last.id, is_error=last.is_error, name=last.name)
    for key in ("output", "outputs"):
        if item.keys() <= {key, "kwargs", "tags", "metadata"} and key in item:
            inner = item[key]
            return outcome_of(inner) if isinstance(inner, str | dict) else ToolOutcome(result=inner)
    return ToolOutcome(result=raw if raw is not None else value)
