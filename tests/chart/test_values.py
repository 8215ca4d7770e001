"""The values say what they are: each has its comment and its place in the schema, and the schema is closed."""

from collections.abc import Iterator
from typing import Any, cast

import yaml

from scripts.chart.places import CHART
from scripts.chart.schema import values_schema

TEXT = (CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA = values_schema()
OPEN = {"EvaluatorConfig"}
"""Sections of the settings that take what they do not name: options of evaluators."""


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Every value with its line. A block that has a comment of its own is one value."""
    for key, value in node.value:
        at, line = f"{path}.{key.value}".removeprefix("."), int(key.start_mark.line)
        is_block = isinstance(value, yaml.MappingNode) and not value.flow_style
        if is_block and not is_commented(line):
            yield from leaves(value, at)
        else:
            yield at, line


def is_commented(line: int) -> bool:
    """Whether a comment that begins with `# --` stands right above."""
    above = TEXT.splitlines()[:line]
    while above[-1].strip().startswith("#") and not above[-1].strip().startswith("# --"):
        above.pop()
    return above[-1].strip().startswith("# --")


def test_every_value_has_a_comment() -> None:
    root = yaml.SafeLoader(TEXT).get_single_node()

    assert [path for path, line in leaves(root) if not is_commented(line)] == []


def test_the_schema_has_the_keys_of_the_values_and_two_for_parent_charts() -> None:
    values = cast(dict[str, Any], yaml.safe_load(TEXT))

    assert SCHEMA["properties"].keys() - values.keys() == {"global", "enabled"}
    assert values.keys() <= SCHEMA["properties"].keys()


def objects(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema with properties, by its path; conditions only narrow what others close."""
    if isinstance(node, list):
        for at, each in enumerate(cast(list[Any], node)):
            yield from objects(each, f"{path}/{at}")
    elif isinstance(node, dict):
        schema = cast(dict[str, Any], node)
        if isinstance(schema.get("properties"), dict) and "type" in schema:
            yield path, schema
        for key, each in schema.items():
            if key not in {"if", "then", "onKafka"}:
                yield from objects(each, f"{path}/{key}")


def test_no_object_takes_an_unknown_key() -> None:
    found = dict(objects(SCHEMA))

    open_ones = [path for path, each in found.items() if each.get("additionalProperties")]

    assert len(found) > 80
    assert {path.rpartition("/")[2] for path in open_ones} <= OPEN
    assert [path for path, each in found.items() if "additionalProperties" not in each] == []
