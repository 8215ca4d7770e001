"""The chart's README: helm/README.head.md, and a table of all values made from the comments of values.yaml.

A comment that begins with `# --` belongs to the key below it and goes on in the lines after it. A key with such a
comment is one row, with all that is below it as its default; a mapping without one is looked into.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from scripts.chart.places import CHART, HELM

_yaml: Any = yaml  # the types of compose and serialize are unknown to pyright in part
_TYPES = {
    "str": "text",
    "int": "integer",
    "bool": "true or false",
    "dict": "object",
    "list": "list",
}
_TABLE = "| Key | Type | Default | Meaning |\n|---|---|---|---|\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value of the chart."""

    key: str
    type: str
    default: str
    meaning: str


def readme() -> dict[str, str]:
    """The README, beside the chart and in its package, by path below helm/."""
    head = (HELM / "README.head.md").read_text(encoding="utf-8")
    text = head + "\n" + _TABLE + "".join(_line(each) for each in rows())
    return {"README.md": text, "spanwise/README.md": text.replace("](spanwise/", "](")}


def rows(text: str | None = None) -> list[Row]:
    """Every value in the order of values.yaml.

    Raises:
        ValueError: A key has no meaning beside it, by its name.
    """
    source = text or (CHART / "values.yaml").read_text(encoding="utf-8")
    return list(_rows(_yaml.compose(source), source.splitlines(), ""))


def _rows(node: Any, lines: list[str], above: str) -> Iterator[Row]:
    for key, value in node.value:
        name = f"{above}{key.value}"
        meaning = _meaning(lines, key.start_mark.line)
        if meaning:
            yield _row(name, value, meaning)
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _rows(value, lines, f"{name}.")
        else:
            raise ValueError(f"values.yaml: no comment `# --` above {name}")


def _row(name: str, node: yaml.Node, meaning: str) -> Row:
    default: Any = _yaml.safe_load(_yaml.serialize(node))
    shown = json.dumps(default, ensure_ascii=False)
    if isinstance(node, yaml.MappingNode) and any(key.value == "<<" for key, _ in node.value):
        shown = "see there"
    return Row(key=name, type=_TYPES[type(default).__name__], default=shown, meaning=meaning)


def _meaning(lines: list[str], at: int) -> str:
    found: list[str] = []
    for line in reversed(lines[:at]):
        if not line.strip().startswith("#"):
            return ""
        text = line.strip().lstrip("#").strip()
        if text.startswith("-- "):
            return " ".join([text[3:], *reversed(found)])
        found.append(text)
    return ""


def _line(row: Row) -> str:
    default = row.default if row.default == "see there" else f"`{row.default}`"
    cells = (f"`{row.key}`", row.type, default, row.meaning)
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |\n"
