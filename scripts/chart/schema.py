"""values.schema.json: helm/values.schema.yaml with the JSON Schema of the settings in it."""

from collections.abc import Mapping
from typing import Any, cast

import yaml

from collector.commands.config import schema
from collector.slo.alerts import ALERTS
from scripts.chart.places import HELM

Schema = dict[str, Any]
SET_BY_THE_CHART: Mapping[str, tuple[str, ...]] = {
    "Config": ("roles", "data_dir", "admin"),
    "Receiver": ("grpc", "tls", "bearer_tokens"),
    "Http": ("host", "port"),
}
"""By section, the settings that are not part of the value `config`."""
_SCALARS = {"integer", "number", "boolean"}
_NOT_KEPT = {"title", "description", "default", "format"}
_ENV: Schema = {"$ref": "#/definitions/envReference"}
_SECRET: Schema = {"$ref": "#/definitions/secretReference"}


def values_schema() -> Schema:
    """The schema of helm/values.schema.yaml with that of the settings in it."""
    source = cast(Schema, yaml.safe_load((HELM / "values.schema.yaml").read_text(encoding="utf-8")))
    parts = {name: source.pop(name) for name in ("podSettings", "workload")}
    written_out = cast(Schema, _closed(source, parts))
    written_out["definitions"].update(settings_definitions())
    return written_out


def _closed(node: Any, parts: Mapping[str, Schema]) -> Any:
    """`closed: {...}` becomes an object without further properties; `NAME: here` the properties of that part."""
    if isinstance(node, list):
        return [_closed(each, parts) for each in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    found: Schema = {}
    for key, value in cast(Schema, node).items():
        if key == "closed":
            found |= {
                "type": "object",
                "additionalProperties": False,
                "properties": _closed(value, parts),
            }
        elif value == "here":
            found |= (
                {"enum": [each.name for each in ALERTS]}
                if key == "alerts"
                else cast(Schema, _closed(parts[key], parts))
            )
        else:
            found[key] = _closed(value, parts)
    return found


def settings_definitions() -> dict[str, Schema]:
    """The sections of `spanwise.yaml` as they may stand in the value `config`.

    Without what the chart sets. A secret is a reference to the environment, never the secret itself; every other value
    may be a reference too.
    """
    described = schema()
    sections: dict[str, Schema] = described["$defs"]
    root = {key: described[key] for key in ("type", "additionalProperties", "properties")}
    sections = {**sections, "Config": root}
    found: dict[str, Schema] = {}
    for name, section in sections.items():
        kept = cast(Schema, _plain(section))
        properties = cast(Schema, kept.get("properties", {}))
        for setting in SET_BY_THE_CHART.get(name, ()):
            del properties[setting]
        kept["properties"] = {key: _setting(value) for key, value in properties.items()}
        found[name] = kept
    return found


def _plain(node: Any) -> Any:
    """Draft 7 of 2020-12: other references; without titles and defaults, which a reference may not have beside it."""
    if isinstance(node, list):
        return [_plain(each) for each in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    section = cast(Schema, node)
    if "$ref" in section:
        return {"$ref": str(section["$ref"]).replace("#/$defs/", "#/definitions/")}
    return {
        key: {name: _plain(each) for name, each in cast(Schema, value).items()}
        if key == "properties"
        else _plain(value)
        for key, value in section.items()
        if key not in _NOT_KEPT
    }


def _setting(value: Schema) -> Schema:
    options = cast(list[Schema], value["anyOf"]) if "anyOf" in value else [value]
    if any(each.get("writeOnly") for each in options):
        return {"anyOf": [_SECRET, *(each for each in options if not each.get("writeOnly"))]}
    if value.get("type") == "array":
        return {**value, "items": _setting(value["items"])}
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return {**value, "additionalProperties": _setting(value["additionalProperties"])}
    closed = any({"enum", "const", "pattern"} & each.keys() for each in options)
    if closed or any(each.get("type") in _SCALARS for each in options):
        return {"anyOf": [*options, _ENV]}
    return value
