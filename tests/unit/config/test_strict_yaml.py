"""YAML: what is far more than its text, or says one thing twice, is refused before anything is built of it."""

import pytest
import yaml

from collector.config.strict_yaml import MAX_ALIASED, NotYaml, parse, unique
from tests.support.cpu import within_cpu
from tests.support.table import for_each


def refusal(text: str) -> str:
    with within_cpu(10), pytest.raises(NotYaml) as raised:
        parse(text)
    (line,) = str(raised.value).splitlines()
    return line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a: &x {b: 1}\nc: *x",
        "base: &x {b: 1}\nc:\n  <<: *x\n  b: 2",
        "[1, 2.5, true, null, 2026-01-01, 0x1f, 1_000]",
        '{"a": [x, x], b: {a: 1}}',
    ],
)
def test_what_is_sound_is_read_as_before(text: str) -> None:
    assert parse(text) == yaml.safe_load(text)


@pytest.mark.parametrize("shape", ["[{}]", "{{k: [{}]}}", "{{<<: [{}]}}"])
def test_an_alias_bomb_is_refused(shape: str) -> None:
    lines = ["a0: &a0 " + ("{x: y}" if "<<" in shape else "[x, x]")]
    lines += [f"a{n}: &a{n} {shape.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 9)]

    assert "aliases stand for more than" in refusal("\n".join(lines))


def test_one_value_may_be_aliased_often() -> None:
    often = MAX_ALIASED // 3

    assert len(parse(f"a: &a [x, y]\nb: [{', '.join(['*a'] * often)}]")["b"]) == often


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: {b: 1, c: 2, b: 3}", ":1:17: a.b"),
        ("a: 1\na: 2", ":2:1: a"),
        ("- {x: [{y: 1, y: 1}]}", ":1:15: [0].x[0].y"),
        ("1: a\n'1': b", ":2:1: 1"),
    ],
)
def test_a_key_that_stands_twice_is_named_with_its_path(text: str, path: str) -> None:
    assert refusal(text) == f"{path}: given twice; keep one"


@for_each(
    ("text", "said"),
    [
        ("a: &a [*a]", "refers to itself"),
        ("[" * 5000, "not YAML"),
        ("a: " + "[" * 150 + "]" * 150, "nested"),
        ("a: 2001-02-30", "does not exist"),
        ("a: " + "9" * 5000, "5000 characters"),
        ("a: " + "1" + ":1" * 5000, "10001 characters"),
        ("a: !!python/object:os.system {}", "not YAML"),
        ("a: \x07", "not allow"),
        ("{a: b", "not YAML"),
        ("? [a]\n: b", "not YAML"),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, said: str) -> None:
    assert said in refusal(text)


def test_a_secret_is_not_shown_and_json_objects_are_as_strict() -> None:
    assert "hush" not in refusal("key: {hush\n")
    assert unique([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(NotYaml, match="b: given twice"):
        unique([("a", 1), ("b", 2), ("b", 3)])
