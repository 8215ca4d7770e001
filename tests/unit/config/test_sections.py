"""Sections `notify` and `redaction`, and YAML that is refused before anything is built of it."""

import json
from typing import Any

import pytest
import yaml

from collector.base.errors import ConfigError
from collector.commands.config import effective
from collector.config.load import load
from collector.config.strict_yaml import MAX_ALIASED, NotYaml, parse, unique
from collector.config.tree import Config
from tests.support.growth import within_cpu
from tests.support.table import for_each


def loaded(**target: Any) -> Config:
    return load([], {}, [], {"notify": {"to": {"chat": target}}})


NO_KIND = "expected one of slack, teams, pagerduty, alertmanager, webhook, got none"


@for_each(
    ("target", "line"),
    [
        ({}, f": {NO_KIND}"),
        ({"slack": "http://a", "teams": "http://b"}, ": expected one of"),
        ({"slack": "s3cr3t"}, ".slack: expected a URL such as https://host/path"),
        ({"alertmanager": "http://u:p@host:9093"}, ".alertmanager: a URL without user"),
        ({"slack": "http://a", "secret": "x"}, ".secret: only a webhook is signed"),
        ({"webhook": "http://a", "secret": "whsec_%"}, ".secret: behind whsec_"),
        ({"slack": "http://a", "endpoint": "http://b"}, ".endpoint: only with pagerduty"),
        ({"slack": "http://a", "severity": "warning"}, ".severity: "),
        ({"slack": "http://a", "only": ["AgentQualityFastBurn"]}, ".only[0]: "),
        ({"slack": "http://a", "ca_file": "/no/such"}, ".ca_file: no such file"),
    ],
)
def test_a_mistake_is_one_line_with_its_path(target: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(**target)

    assert str(raised.value).startswith(f"notify.to.chat{line}")
    assert "s3cr3t" not in str(raised.value)


@for_each(
    "target",
    [
        {"slack": "https://hooks.slack.com/services/T000"},
        {"teams": "https://x.logic.azure.com/workflows/T000"},
        {"pagerduty": "T000", "severity": "page", "endpoint": "https://events.eu.pagerduty.com"},
        {"alertmanager": "http://alertmanager:9093"},
        {"webhook": "http://localhost/T000", "secret": "whsec_MDEy", "only": ["AgentFault"]},
    ],
)
def test_each_kind_is_taken_and_an_address_that_is_a_secret_is_not_printed(
    target: dict[str, Any],
) -> None:
    config = loaded(**target)
    (kept,) = config.notify.to.values()

    assert kept.kind == next(iter(target))
    assert "T000" not in config.model_dump_json()


@for_each(
    ("pattern", "said"),
    [
        ("(", "a pattern of RE2, which runs in linear time: missing ): ("),
        (r"(a+)+\1", r"invalid escape sequence: \1"),
        ("(?=a)b", "invalid perl operator: (?="),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("", "the pattern matches the empty text"),
        ("a*", "the pattern matches the empty text"),
        ("Email", "did you mean email?"),
        ("e-mail", "did you mean email?"),
        ("tokens", "did you mean token?"),
        ("x" * 1001, "expected at most 1000 characters, got 1001"),
    ],
)
def test_a_pattern_that_is_none_is_refused_with_its_path(pattern: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load([], {"SPANWISE_REDACTION__PATTERNS": f"{{own: {json.dumps(pattern)}}}"}, [])

    assert str(raised.value).startswith("redaction.patterns.own: ")
    assert said in str(raised.value)


@for_each("name", ["a b", "", "x" * 65, "a]", "ü"])
def test_a_name_that_cannot_be_in_a_marker_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"redaction\.patterns.*expected a name of letters"):
        load([], {}, [f"redaction={{patterns: {{'{name}': email}}}}"])


def test_kinds_and_at_most_64_own_patterns_are_kept_and_the_key_is_masked() -> None:
    many = ", ".join(f"p{number}: x{number}" for number in range(65))
    config = load(
        [], {}, [r"redaction={patterns: {mail: email, order: 'ORD-\d+'}, key: open-sesame}"]
    )

    assert dict(config.redaction.patterns) == {"mail": "email", "order": r"ORD-\d+"}
    assert "open-sesame" not in effective(config)
    for given, said in (
        ("redaction.key=short", "redaction.key"),
        (f"redaction.patterns={{{many}}}", "expected at most 64 patterns, got 65"),
    ):
        with pytest.raises(ConfigError, match=said):
            load([], {}, [given])


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
