"""Markers in one text, what the built-in kinds of secrets find and leave alone, and which names are shown."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.otlp import marking
from collector.otlp.marking import Marking, Steps
from collector.otlp.names import DROPPED, is_shown, name_shown, span_name_shown
from collector.otlp.secret_kinds import is_card
from tests.support.table import for_each

SAMPLES: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "redaction.yaml").read_text("utf-8")
)
ALL = {kind: kind for kind in ("email", "card", "phone", "token")}


def marked_with(text: str, patterns: dict[str, str] | None = None, **given: Any) -> str:
    marks = Marking(ALL if patterns is None else patterns, given.pop("key", None))
    found = marks.text(text.encode(), Steps(), **given)
    assert found is None or marks.may_match(text.encode(), 0, len(text.encode()))
    return text if found is None else found.decode()


@for_each("written,read", SAMPLES["json"])
def test_json_is_read_and_stays_json(written: str, read: str) -> None:
    assert json.loads(marked_with(written)) == json.loads(read)


def test_json_within_json() -> None:
    inner = json.dumps({"who": "ü\njane@example.org", "n": 4539148803436467})
    twice = json.dumps({"arguments": inner, "list": "[4539148803436467]"})

    assert json.loads(json.loads(marked_with(twice))["list"]) == ["[card]"]
    assert json.loads(json.loads(marked_with(twice))["arguments"]) == {
        "who": "ü\n[email]",
        "n": "[card]",
    }


def test_a_number_in_a_repr_gets_the_quotes_of_the_repr() -> None:
    assert marked_with("{'n': 4539148803436467}") == "{'n': '[card]'}"


def test_own_patterns_come_first_and_may_be_bound_to_their_place() -> None:
    patterns = {"order": r"^ORD-\d{6}\b", "email": "email", "path": r"C:\\new\\\w+"}

    assert marked_with(r"ORD-774411 of C:\new\data", patterns) == "[order] of [path]"
    assert marked_with("an ORD-774411", patterns) == "an ORD-774411"


def test_an_own_pattern_leaves_markers_alone() -> None:
    patterns = {"word": "[a-z]+", "email": "email"}
    once = marked_with("X1 Jane 2@EXAMPLE.ORG", patterns)

    assert once == "X1 J[word] [email]"
    assert marked_with(once, patterns) == once


def test_secrets_in_identifiers_stay_apart() -> None:
    one, other = (marked_with(f"{who}@example.org/7", identifies=True) for who in ("jane", "joe"))

    assert one.startswith("[email]#")
    assert len(one) == len("[email]#12345678/7")
    assert one != other
    assert marked_with("jane@example.org/7", identifies=True) == one
    assert marked_with(one, identifies=True) == one


def test_with_a_key_digests_of_identifiers_cannot_be_guessed() -> None:
    with_key, with_other, without = (
        marked_with("jane@example.org", identifies=True, key=key)
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


# --- the built-in kinds of secrets, and what they leave alone --------------------------------------------------------


def marked(text: str, *kinds: str) -> str:
    """The text as the kinds leave it, all of them by default."""
    return marked_with(text, {kind: kind for kind in kinds or ALL})


@pytest.mark.parametrize("address", SAMPLES["emails"])
def test_an_email_address(address: str) -> None:
    assert marked(f"Write to {address}, please") == "Write to [email], please"
    assert marked(f"“{address}”, (<{address}>).") == "“[email]”, (<[email]>)."


def test_words_of_a_script_without_spaces_are_no_part_of_an_address() -> None:
    assert marked("请联系jane@example.org谢谢") == "请联系[email]谢谢"


@for_each("card", SAMPLES["cards"])
def test_a_card(card: str) -> None:
    assert marked(f"pay with {card}, then") == "pay with [card], then"
    assert marked(f"ccv 123 {card} 12/29") == "ccv 123 [card] 12/29"
    # With the three digits, one of ten passes the check as a longer number.
    assert marked(f"{card} 123") in ("[card] 123", "[card]")


@for_each("card", SAMPLES["cards"])
def test_a_card_with_a_wrong_check_digit_is_none(card: str) -> None:
    wrong = card[:-1] + str((int(card[-1]) + 1) % 10)

    assert marked(wrong, "card") == wrong


def test_every_change_of_one_digit_is_noticed() -> None:
    digits = "4539148803436467"
    changed = [
        digits[:at] + str((int(digits[at]) + by) % 10) + digits[at + 1 :]
        for at in range(16)
        for by in range(1, 10)
    ]

    assert is_card(digits)
    assert not any(map(is_card, changed))


@for_each("number", SAMPLES["phones"])
def test_a_phone_number(number: str) -> None:
    assert marked(f"call {number}, now") == "call [phone], now"
    assert marked(f"tel:{number}") == "tel:[phone]"


@for_each("token", SAMPLES["tokens"])
def test_a_token(token: str) -> None:
    assert marked(f'key="{token}"') == 'key="[token]"'
    assert marked(f"Authorization: {token}") == "Authorization: [token]"


@for_each("text", SAMPLES["harmless"])
def test_dates_times_ids_amounts_and_versions_stay(text: str) -> None:
    assert marked(text) == text


# --- names that are shown without content ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES["names"])
def test_names_that_look_like_one_are_shown(name: str) -> None:
    assert name_shown(name) == name
    assert span_name_shown(f"chat {name}".strip()) == f"chat {name}".strip()


@for_each("content", SAMPLES["content"])
def test_what_may_be_content_is_not(content: str) -> None:
    assert name_shown(content) == DROPPED
    assert content not in span_name_shown(f"chat {content}")
    assert content not in span_name_shown(content)


def test_numbers_are_shown_but_not_those_of_cards() -> None:
    assert [is_shown(each) for each in (True, 1, 1.5, 1790000000000000000)] == [True] * 4
    assert [is_shown(each) for each in (4539148803436467, "1", None, [1])] == [False] * 4
