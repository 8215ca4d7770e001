"""Text rules of ECMAScript where Python's differ; every expectation here is what Node 20 answered."""

import re

import pytest

from evaluators.matching.ecmascript import found
from evaluators.matching.json_values import parse_json
from evaluators.matching.text import json_schema
from tests.support.table import for_each

MATCH = [
    *(("[^\\W]", "", "a"), ("[\\W]", "", "é"), ("[\\s\\S]", "", "\x1c"), ("[^]", "", "\n")),
    *(("\\B", "", ""), ("a$", "m", "a\rc"), ("^c", "m", "a\u2028c"), ("^.{2}$", "", "👍")),
    *(("\\ud83d", "", "👍"), ("(a)?\\1b", "", "b"), ("\\1(a)", "", "a")),
    *(("(?<a$>x)\\k<a$>", "", "xx"), ("\\k<y>", "", "k<y>"), ("\\u{3}", "", "uuu")),
    *(("\\x4", "", "x4"), ("\\cJ", "", "\n"), ("\\101", "", "A"), ("[a-\\d]", "", "-")),
    *(("a{,3}", "", "a{,3}"), ("(?=a)*", "", ""), ("(?<=^|\\s)foo", "", "a foo")),
    *(("(?<=^|\\s)foo", "", "foo"), ("(?<!ab|c)d", "", "bd"), ("É", "i", "é")),
    *(("[à-ÿ]", "i", "É"), ("µ", "i", "μ")),
]
NO_MATCH = [
    *(("[^\\W]", "", "é"), ("[\\S]", "", "\ufeff"), ("[]", "", "]"), ("[]a]", "", "]")),
    *(("^.$", "", "👍"), ("k", "i", "\u212a"), ("s", "i", "\u017f"), ("\\w", "i", "\u017f")),
    *(("ß", "i", "ẞ"), ("a{,3}", "", "aaa"), ("(?<=^|\\s)foo", "", "afoo")),
    *(("(?<!ab|c)d", "", "abdcd"), ("yes$", "", "yes\n")),
]
"""What Python's own rules would match."""


@for_each(
    "pattern,flags,text,matches",
    [*((*each, True) for each in MATCH), *((*each, False) for each in NO_MATCH)],
)
def test_a_pattern_matches_as_in_ecmascript(
    pattern: str, flags: str, text: str, matches: bool
) -> None:
    assert found(pattern, text, flags) is matches


@for_each(
    "pattern",
    [
        "(?i)a", "(?P<y>a)", "(?>a)", "a++", "a**", "*a", "^*", "{1}", "(", "a)", "[a", "\\", "[b-a]", "a{2,1}",
        "a{1,99999999999999}", "(?<1a>a)", "(?<a>x)(?<a>y)", "(?<y>a)\\k", "(?<=a+)b",
    ],
)  # fmt: skip
def test_an_invalid_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(re.error):
        found(pattern, "a")


@for_each("text", ["NaN", "-Infinity", "\ufeff1", '"a\nb"', "01", "[1,]", "\xa01", ""])
def test_what_is_not_strict_json_is_not_parsed(text: str) -> None:
    fault, _ = json_schema(text, {}) or ("", "")

    assert fault == "parse"


@pytest.mark.parametrize("text", ["1e400", "9" * 5000])
def test_a_number_beyond_every_double_is_json_but_no_number(text: str) -> None:
    assert parse_json(text) == float("inf")

    assert json_schema(text, {}) is None
    assert json_schema(text, {"type": "number"}) is not None


@for_each(
    "text,schema,fits",
    [
        ('"ab\\n"', {"pattern": "^[a-z]+$"}, False),
        ('"é"', {"pattern": "^\\w$"}, False),
        ("0.7", {"multipleOf": 0.1}, True),
        ("0.75", {"multipleOf": 0.1}, False),
        ('{"x": "\\ud83d"}', {"properties": {"x": {"type": "string"}}}, True),
    ],
)
def test_a_schema_of_the_user_means_what_ecmascript_and_decimals_mean(
    text: str, schema: dict[str, object], fits: bool
) -> None:
    assert (json_schema(text, schema) is None) == fits
