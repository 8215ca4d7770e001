"""`redaction.patterns`: what is taken, and how what is not is refused."""

import json

import pytest

from collector.base.errors import ConfigError
from collector.commands.config import effective
from collector.config.load import load
from tests.support.table import for_each


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
