"""Sections `notify` and `redaction`: one clear line for each mistake, and no secret printed."""

import json
from typing import Any

import pytest

from collector.base.errors import ConfigError
from collector.commands.config import effective
from collector.config.load import load
from collector.config.tree import Config
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
