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


@for_each(
    ("target", "line"),
    [
        (
            {},
            "notify.to.chat: expected one of slack, teams, pagerduty, alertmanager, webhook, got none",
        ),
        ({"slack": "http://a", "teams": "http://b"}, "notify.to.chat: expected one of"),
        ({"slack": "s3cr3t"}, "notify.to.chat.slack: expected a URL such as https://host/path"),
        (
            {"alertmanager": "http://u:p@host:9093"},
            "notify.to.chat.alertmanager: a URL without user",
        ),
        ({"slack": "http://a", "secret": "x"}, "notify.to.chat.secret: only a webhook is signed"),
        ({"webhook": "http://a", "secret": "whsec_%"}, "notify.to.chat.secret: behind whsec_"),
        (
            {"slack": "http://a", "endpoint": "http://b"},
            "notify.to.chat.endpoint: only with pagerduty",
        ),
        ({"slack": "http://a", "severity": "warning"}, "notify.to.chat.severity: "),
        ({"slack": "http://a", "only": ["AgentQualityFastBurn"]}, "notify.to.chat.only[0]: "),
        ({"slack": "http://a", "ca_file": "/no/such"}, "notify.to.chat.ca_file: no such file"),
    ],
)
def test_a_mistake_is_one_line_with_its_path(target: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(**target)

    assert str(raised.value).startswith(line)
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    "target",
    [
        {"slack": "https://hooks.slack.com/services/x"},
        {"teams": "https://x.logic.azure.com/workflows/y"},
        {"pagerduty": "key", "severity": "page", "endpoint": "https://events.eu.pagerduty.com"},
        {"alertmanager": "http://alertmanager:9093"},
        {"webhook": "http://localhost:1/x", "secret": "whsec_MDEy", "only": ["AgentFault"]},
    ],
)
def test_each_kind_is_taken(target: dict[str, Any]) -> None:
    (kept,) = loaded(**target).notify.to.values()

    assert kept.kind == next(iter(target))


@pytest.mark.parametrize("name", ["slack", "teams", "webhook"])
def test_an_address_that_is_a_secret_is_not_printed(name: str) -> None:
    assert "T000" not in loaded(**{name: "https://host/T000"}).model_dump_json()


@for_each(
    ("pattern", "said"),
    [
        (
            "(",
            "a pattern of RE2, which runs in linear time: missing ): (",
        ),
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


@pytest.mark.parametrize("name", ["a b", "", "x" * 65, "a]", "ü"])
def test_a_name_that_cannot_stand_in_a_marker_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"redaction\.patterns.*expected a name of letters"):
        load([], {}, [f"redaction={{patterns: {{'{name}': email}}}}"])


def test_more_than_64_patterns_are_refused() -> None:
    patterns = ", ".join(f"p{number}: x{number}" for number in range(65))

    with pytest.raises(ConfigError, match="expected at most 64 patterns, got 65"):
        load([], {}, [f"redaction.patterns={{{patterns}}}"])


def test_kinds_and_own_patterns_are_kept_as_they_stand_and_the_key_is_masked() -> None:
    config = load(
        [], {}, [r"redaction={patterns: {mail: email, order: 'ORD-\d+'}, key: open-sesame}"]
    )

    assert dict(config.redaction.patterns) == {"mail": "email", "order": r"ORD-\d+"}
    assert "open-sesame" not in effective(config)
    with pytest.raises(ConfigError, match=r"redaction\.key"):
        load([], {}, ["redaction.key=short"])
