"""From a struct to a strict JSON Schema: every property required, nothing additional, no references."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from evaluators.matching.json_values import list_of, object_of
from evaluators.model import JSON

_KEPT = ("type", "enum", "const", "minimum", "maximum", "minItems", "maxItems")


def strict_schema(kind: type[msgspec.Struct]) -> dict[str, JSON]:
    """The schema of a struct as providers' strict modes want it; an optional field is required and may be null.

    Raises:
        TypeError: A field has a type that a strict schema cannot say, a mapping for instance.
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
    """A list, of exactly that length if given."""
    bounds = {} if length is None else {"minItems": length, "maxItems": length}
    return {"type": "array", "items": entry, **bounds}


def shape(schema: JSON) -> str:
    """A schema in a few words, for judges whose provider shows them none. Lengths vary by subject and are left out."""
    known: dict[str, JSON] = object_of(schema) or {}
    if "anyOf" in known:
        return " or ".join(shape(each) for each in known["anyOf"])
    if "enum" in known:
        return " or ".join(f'"{each}"' for each in known["enum"])
    if known.get("type") == "object":
        fields = cast("dict[str, JSON]", known["properties"])
        return "{" + ", ".join(_fields(fields)) + "}"
    if known.get("type") == "array":
        return f"[{shape(known['items'])}, ...]"
    bounds = f" {known['minimum']}-{known['maximum']}" if "minimum" in known else ""
    return f"{known.get('type', 'null')}{bounds}"


def _fields(fields: Mapping[str, JSON]) -> Iterator[str]:
    for told, run in itertools.groupby(fields, key=lambda name: shape(fields[name])):
        names = [f'"{name}"' for name in run]
        yield f"{', '.join(names)}: {'each ' if len(names) > 1 else ''}{told}"


def _strict(schema: JSON, parts: Mapping[str, JSON]) -> dict[str, JSON]:
    given: dict[str, JSON] = object_of(schema) or {}
    if "$ref" in given:
        return _strict(parts[given["$ref"]], parts)
    if "anyOf" in given:
        return {"anyOf": [_strict(each, parts) for each in list_of(given["anyOf"]) or []]}
    if "properties" in given:
        fields = cast("dict[str, JSON]", given["properties"])
        return object_schema({name: _strict(each, parts) for name, each in fields.items()})
    if given.get("type") == "array" and "items" in given:
        bounds = {key: given[key] for key in ("minItems", "maxItems") if key in given}
        return {"type": "array", "items": _strict(given["items"], parts), **bounds}
    if not {"type", "enum", "const"} & set(given) or given.get("type") == "object":
        raise TypeError(f"a judge's answer cannot be bound to {given}")
    return {key: given[key] for key in _KEPT if key in given}
