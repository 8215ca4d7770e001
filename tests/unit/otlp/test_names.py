"""Which names `redaction.content: drop` shows."""

import pytest

from collector.otlp.names import DROPPED, is_shown, name_shown, span_name_shown
from tests.support.table import for_each


@pytest.mark.parametrize(
    "name",
    [
        "lookup_order",
        "gpt-4o-2024-08-06",
        "claude-sonnet-4-20250514",
        "anthropic/claude-3:beta",
        "openinference.instrumentation.dspy",
        "exception",
        "0.1.48",
        "",
    ],
)
def test_names_that_look_like_one_are_shown(name: str) -> None:
    assert name_shown(name) == name
    assert span_name_shown(f"chat {name}".strip()) == f"chat {name}".strip()


@for_each(
    "content",
    [
        "find jane now",
        "jane@example.org",
        "4539148803436467",
        "0171-5551234",
        "ghp_abcdefghij0123456789ABCD",
        "customer-88231904",
        "x" * 65,
        "größe",
        '{"order":1}',
        "a\nb",
    ],
)
def test_what_may_be_content_is_not(content: str) -> None:
    assert name_shown(content) == DROPPED
    assert content not in span_name_shown(f"chat {content}")
    assert content not in span_name_shown(content)


def test_numbers_are_shown_but_not_those_of_cards() -> None:
    assert [is_shown(each) for each in (True, 1, 1.5, 1790000000000000000)] == [True] * 4
    assert [is_shown(each) for each in (4539148803436467, "1", None, [1])] == [False] * 4
