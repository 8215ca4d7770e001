"""Markers in one text: JSON and its escapes, own patterns, identifiers, bounds."""

import json
from typing import Any

import pytest

from collector.otlp import marking
from collector.otlp.marking import Marking, Steps
from tests.support.table import for_each

ALL = {kind: kind for kind in ("email", "card", "phone", "token")}


def marked(text: str, patterns: dict[str, str] | None = None, **given: Any) -> str:
    marks = Marking(ALL if patterns is None else patterns, given.pop("key", None))
    found = marks.text(text.encode(), Steps(), **given)
    assert found is None or marks.may_match(text.encode(), 0, len(text.encode()))
    return text if found is None else found.decode()


@for_each(
    ("written", "read"),
    [
        (r'{"a": "jane\u0040example.org"}', {"a": "[email]"}),
        (r'{"a": "x\njane@example.org\tx"}', {"a": "x\n[email]\tx"}),
        (r'{"a": "x\nsk-live-9f8E7d6C5b4A3f2E"}', {"a": "x\n[token]"}),
        (r'{"a": "\u006aane@ex\u0061mple.org\u00e9"}', {"a": "[email]"}),
        (r'{"a": "Bearer abcdefgh\/12345678"}', {"a": "[token]"}),
        (r'{"a": "\u002b49 170 5551234"}', {"a": "[phone]"}),
        (r'{"jane@example.org": 1}', {"[email]": 1}),
        (r'{"n": 4539148803436467, "m": 1}', {"n": "[card]", "m": 1}),
        (r'["x", 4539148803436467 ]', ["x", "[card]"]),
        (r"[-4539148803436467]", ["[card]"]),
        (r'{"\\": 4539148803436467}', {"\\": "[card]"}),
        (r'{"n": -1, "s": "4539148803436467"}', {"n": -1, "s": "[card]"}),
        (r'{"a": "say \"jane@example.org\""}', {"a": 'say "[email]"'}),
        (r'{"a": "\ud83d\ude00jane@example.org"}', {"a": "\U0001f600[email]"}),
    ],
)
def test_json_is_read_and_stays_json(written: str, read: Any) -> None:
    assert json.loads(marked(written)) == read


def test_json_within_json() -> None:
    inner = json.dumps({"who": "ü\njane@example.org", "n": 4539148803436467})
    twice = json.dumps({"arguments": inner, "list": "[4539148803436467]"})

    assert json.loads(json.loads(marked(twice))["list"]) == ["[card]"]
    assert json.loads(json.loads(marked(twice))["arguments"]) == {
        "who": "ü\n[email]",
        "n": "[card]",
    }


def test_a_number_in_a_repr_gets_the_quotes_of_the_repr() -> None:
    assert marked("{'n': 4539148803436467}") == "{'n': '[card]'}"


def test_own_patterns_come_first_and_may_be_bound_to_their_place() -> None:
    patterns = {"order": r"^ORD-\d{6}\b", "email": "email", "path": r"C:\\new\\\w+"}

    assert marked(r"ORD-774411 of C:\new\data", patterns) == "[order] of [path]"
    assert marked("an ORD-774411", patterns) == "an ORD-774411"


def test_an_own_pattern_leaves_markers_alone() -> None:
    patterns = {"word": "[a-z]+", "email": "email"}
    once = marked("X1 Jane 2@EXAMPLE.ORG", patterns)

    assert once == "X1 J[word] [email]"
    assert marked(once, patterns) == once


def test_secrets_in_identifiers_stay_apart() -> None:
    one, other = (marked(f"{who}@example.org/7", identifies=True) for who in ("jane", "joe"))

    assert one.startswith("[email]#")
    assert len(one) == len("[email]#12345678/7")
    assert one != other
    assert marked("jane@example.org/7", identifies=True) == one
    assert marked(one, identifies=True) == one


def test_with_a_key_digests_of_identifiers_cannot_be_guessed() -> None:
    with_key, with_other, without = (
        marked("jane@example.org", identifies=True, key=key)
        for key in ("a long secret", "another one", None)
    )

    assert len({with_key, with_other, without}) == 3


def test_what_would_cost_too_much_is_one_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marking, "STEPS", 1_000)
    steps = Steps()
    text = ("a@b.cc " * 251).encode()

    assert Marking(ALL).text(text, steps) == b"[token]"
    assert (steps.marked, steps.whole) == (0, 1)
    assert Marking(ALL).text(b"harmless", steps) is None
    assert Marking(ALL).text(b"or c@d.ee", steps) == b"[token]"


def test_an_own_pattern_pays_for_what_it_looks_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """`x` after `x` is found, each after a look at all the rest: RE2 is linear in one search, not in all of them."""
    monkeypatch.setattr(marking, "STEPS", 10_000)
    steps = Steps()

    assert Marking({"own": "x.*?y|x"}).text(b"x" * 500_000, steps) == b"[own]"
    assert steps.whole == 1
