"""Redacting a text takes time in proportion to it, and a request at most about as long as its steps."""

from collections.abc import Callable

import pytest

from collector.otlp.marking import Marking, Steps
from tests.support.growth import cpu_of, growth
from tests.support.table import for_each

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]

MOST = 2.5
MARKING = Marking(
    {kind: kind for kind in ("email", "card", "phone", "token")}
    | {"order": r"\bORD-\d{6}\b", "lazy": "z.*?q|z"}
)
SECRET = "jane@example.org "
UNITS = {
    "secrets": SECRET,
    "backslashes": "\\",
    "escapes": r"\u0041",
    "lines of JSON": r"\n",
    "quotes": r"\"",
    "ats": "@",
    "addresses without an end": "a@b.1",
    "labels": "b.",
    "digits": "4",
    "digits one by one": "4 ",
    "fours": "4539 ",
    "phones": "+49 1701 234567 ",
    "phones of a row": "01 42 68 53 00 ",
    "plus signs": "+",
    "tokens": "sk-a",
    "token": "a",
    "key blocks": "-----BEGIN PRIVATE KEY-----",
    "markers": "[email]",
    "brackets": "[",
    "numbers in JSON": "[4539148803436467],",
    "own": "ORD-774411 ",
    "looked at again": "z",
}


def redacting(unit: str) -> Callable[[int], Callable[[], object]]:
    def of(size: int) -> Callable[[], object]:
        text = (SECRET + unit * (size // len(unit)) + SECRET).encode()
        return lambda: MARKING.text(text, Steps(len(text)))

    return of


@for_each("unit", UNITS.values())
def test_twice_the_text_takes_twice_as_long(unit: str) -> None:
    assert growth(redacting(unit), 1 << 16, 1 << 24) < MOST


@for_each("unit", UNITS.values())
def test_two_megabytes_take_seconds_at_most(unit: str) -> None:
    """Steps are about microseconds, on a machine that is not slowed down; a larger text takes in proportion."""
    assert cpu_of(redacting(unit)(1 << 21), at_most=15) < 4
