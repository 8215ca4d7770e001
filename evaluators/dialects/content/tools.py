"""The tools that a model was offered, in every provider's wrapping, and the arguments of their calls."""

from collections.abc import Iterable

from evaluators.dialects.content.hosted_tools import offered_name
from evaluators.dialects.decoding.reprs import read_repr
from evaluators.dialects.decoding.values import as_dict, as_list, in_order, is_mask, string, unwrap
from evaluators.model import JSON, ToolDefinition

SCHEMAS = in_order(
    """parameters input_schema inputSchema parameters_json_schema json_schema parametersJsonSchema schema"""
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
    for key in SCHEMAS:
        schema = unwrap(item.get(key))
        if isinstance(schema, dict) and schema:
            known = as_dict(as_dict(schema).get("json")) or as_dict(schema)  # Bedrock nests it
            return None if any(map(is_mask, as_list(known.get("required")))) else known
    return None


def tools_beside(value: JSON) -> JSON:
    value = unwrap(value)
    if isinstance(value, list):
        return [tool for entry in as_list(value) if (tool := _as_tool(entry))]
    item = as_dict(value)
    inner = map(as_dict, map(item.get, ("config", "kwargs", "invocation_params")))
    for source in (item, *inner):
        for key in ("tools", "functions", "model_request_parameters", "toolConfig"):
            found = unwrap(source.get(key))
            if tools := as_list(found) or as_dict(found):
                return tools
    return None


def _as_tool(entry: JSON) -> JSON:
    message = as_dict(entry)
    inner = as_dict(message.get("content"))
    return (
        inner
        if message.get("role") == "tool" and ("function" in inner or "name" in inner)
        else None
    )


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
