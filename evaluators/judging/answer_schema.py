"""From a struct to a strict JSON Schema: every property required, nothing additional, no references."""

import itertools
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from evaluators.matching.json_values import list_of, object_of
from evaluators.model import JSON

_KEPT = ("type", "enum", "const", "minimum", "maximum", "minItems", "maxItems")


def strict_schema(kind: type[msgspec.Struct]) -> dict[str, JSON]:
    """The schema of a struct in the form of providers' strict modes; an optional field is required and may be null.

    Raises TypeError: a field has a type that a strict schema cannot express, a mapping for instance.
    """
    (whole,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    return _strict(whole, parts)


def object_schema(properties: Mapping[str, JSON]) -> dict[str, JSON]:
    """An object of exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def list_schema(entry: JSON, length: int | None = None) -> dict[str, JSON]:
    bounds = {} if length is None else {"minItems": length, "maxItems": length}
    return {"type": "array", "items": entry, **bounds}


def shape(schema: JSON) -> str:
    """A schema in a few words, for judges whose provider shows them none. Lengths vary by subject and are left out."""
    parts: dict[str, JSON] = object_of(schema) or {}
    if "anyOf" in parts:
        return " or ".join(shape(each) for each in parts["anyOf"])
    if "enum" in parts:
        return " or ".join(f'"{each}"' for each in parts["enum"])
    if parts.get("type") == "object":
        fields = cast("dict[str, JSON]", parts["properties"])
        return "{" + ", ".join(_fields(fields)) + "}"
    if parts.get("type") == "array":
        return f"[{shape(parts['items'])}, ...]"
    bounds = f" {parts['minimum']}-{parts['maximum']}" if "minimum" in parts else ""
    return f"{parts.get('type', 'null')}{bounds}"


def _fields(fields: Mapping[str, JSON]) -> Iterator[str]:
    for form, run in itertools.groupby(fields, key=lambda name: shape(fields[name])):
        names = [f'"{name}"' for name in run]
        yield f"{', '.join(names)}: {'each ' if len(names) > 1 else ''}{form}"


def _strict(schema: JSON, parts: Mapping[str, JSON]) -> dict[str, JSON]:
    source: dict[str, JSON] = object_of(schema) or {}
    if "$ref" in source:
        return _strict(parts[source["$ref"]], parts)
    if "anyOf" in source:
        return {"anyOf": [_strict(each, parts) for each in list_of(source["anyOf"]) or []]}
    if "properties" in source:
        fields = cast("dict[str, JSON]", source["properties"])
        return object_schema({name: _strict(each, parts) for name, each in fields.items()})
    if source.get("type") == "array" and "items" in source:
        bounds = {key: source[key] for key in ("minItems", "maxItems") if key in source}
        return {"type": "array", "items": _strict(source["items"], parts), **bounds}
    if not {"type", "enum", "const"} & set(source) or source.get("type") == "object":
        raise TypeError(f"a judge's answer cannot be bound to {source}")
    return {key: source[key] for key in _KEPT if key in source}
