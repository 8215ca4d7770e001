"""The generated pages say what is; `python -m scripts.docs` mends a stale one."""

from pathlib import Path
from typing import Any

import pytest

from collector.config.tree import Config
from evaluators.dialects.decoding.values import as_dict
from evaluators.registry import Registry
from scripts import docs

DOCS = Path(__file__).parents[3] / "docs"
PAGES = docs.pages()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_not_stale(name: str) -> None:
    kept = (DOCS / name).read_text(encoding="utf-8")

    assert kept == PAGES[name], "run `python -m scripts.docs`"


def test_every_evaluator_stands_in_its_page_with_its_document() -> None:
    for spec in Registry.discover():
        if "/" not in spec.name:
            assert f"### `{spec.name}`\n\nDefined by: {spec.source}.\n" in PAGES["evaluators.md"]


def test_every_setting_stands_in_its_page() -> None:
    listed = {s.path for s in docs.settings_of((docs.ROOT / "spanwise.yaml").read_text("utf-8"))}

    missing = [
        path
        for path in _paths(Config().model_dump(), ())
        if path not in listed and not any(path.startswith(f"{known}.") for known in listed)
    ]

    assert missing == []


def _paths(tree: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for key, value in tree.items():
        below = (*path, key)
        inner = as_dict(value)
        found += _paths(inner, below) if inner else [".".join(below)]
    return found
