"""Merging settings, whatever they are."""

from pathlib import Path
from typing import Any, cast

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collector.commands.config import effective
from collector.config.load import load, merge
from collector.config.tree import Config
from tests.support.examples import USUAL, examples

keys = st.sampled_from(["a", "b", "c"])
leaves = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
trees = st.dictionaries(
    keys, st.recursive(leaves, lambda below: st.dictionaries(keys, below, max_size=3)), max_size=3
)


def leaf(tree: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def leaf_paths(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(tree, dict) or not tree:
        return [path]
    children = cast(dict[str, Any], tree).items()
    return [leaf for key, child in children for leaf in leaf_paths(child, (*path, key))]


@settings(deadline=None, max_examples=examples(USUAL))
@given(trees, trees)
def test_the_later_tree_wins_at_each_of_its_leaves(one: Any, two: Any) -> None:
    merged = merge(one, two)

    for path in leaf_paths(two):
        if leaf(two, path) != {}:
            assert leaf(merged, path) == leaf(two, path)


@settings(deadline=None, max_examples=examples(USUAL))
@given(trees, trees, trees)
def test_merging_changes_no_source_and_repeats_to_the_same(one: Any, two: Any, three: Any) -> None:
    before = yaml.safe_dump([one, two, three])

    merged = merge(merge(one, two), three)

    assert merge(merged, three) == merged
    assert merge(one, {}) == one
    assert yaml.safe_dump([one, two, three]) == before


@settings(max_examples=examples(60), deadline=None)
@example(idle=1.0, memory=1, sample=0.0, model="\x85")
@example(idle=1.0, memory=1, sample=0.0, model="a\u2028b")
@given(
    idle=st.integers(1, 10**7).map(lambda ms: ms / 1000),
    memory=st.integers(1, 1 << 42),
    sample=st.floats(0, 1),
    model=st.none()
    | st.text(st.characters(codec="utf-8", exclude_characters="$:/@\0"), max_size=8),
)
def test_what_is_printed_loads_to_the_same(
    tmp_path_factory: Any, idle: float, memory: int, sample: float, model: str | None
) -> None:
    config = Config.model_validate(
        {
            "windows": {"trace": {"idle": idle}, "memory": memory},
            "judge": {"sample": sample, "model": model},
        }
    )
    path: Path = tmp_path_factory.mktemp("printed") / "spanwise.yaml"
    path.write_text(effective(config), encoding="utf-8")

    assert load([path], {}, []) == config
