"""Explanations lead to the spans that show them, and a session's verdict is in words."""

from typing import Any

from markupsafe import Markup

from collector.api.page.series import thousands
from collector.api.page.sheet import LONG, OPENING, Sheet
from collector.api.page.signal_rows import verdict
from collector.api.page.trace_pages import talk
from collector.api.page.views import MARKED, duration, prose, standing, usd
from evaluators.dialects.reading_order import Line
from tests.support import api_records as make
from tests.support.table import for_each

SPAN = "00f067aa0ba902b7"


def test_names_become_code_and_known_spans_links_or_titles_where_the_page_has_no_spans() -> None:
    text = f"`find_order` failed, span {SPAN}; not {SPAN[::-1]} <b>"
    elsewhere = f"the step before `find_order`, span {SPAN}; not {SPAN[::-1]}"

    assert prose(text, {SPAN: 3}) == Markup(
        f'<code>find_order</code> failed, span <a href="#span-{SPAN}">3</a>; '
        f"not {SPAN[::-1]} &lt;b&gt;"
    )
    assert prose(elsewhere) == Markup(
        f'the step before <code>find_order</code> (<span title="{SPAN}">its span</span>); '
        f"not {SPAN[::-1]}"
    )


def test_prose_marks_a_bounded_number_of_names_as_text() -> None:
    assert prose("`<` " * 5_000).count("<code>") == MARKED
    assert prose("`<img src=x>`") == "<code>&lt;img src=x&gt;</code>"


def test_little_time_and_money_is_a_number_too_and_thousands_read_short() -> None:
    times = [duration(each) for each in (0.00044, 0.005, 0.34, 4.2, 185)]
    costs = [usd(each) for each in (3, 0.0042, 0.000023, 0.0000001, 0)]
    counts = [thousands(each) for each in (0, 840.4, 9_999, 12_500, 3_100_000)]

    assert times == ["0.4 ms", "5 ms", "340 ms", "4.2 s", "3 min 5 s"]
    assert costs == ["$3.00", "$0.0042", "$0.000023", "below $0.000001", "$0.00"]
    assert counts == ["0", "840", "9999", "12.5k", "3.1M"]


def rows(**scores: float) -> list[dict[str, Any]]:
    return [
        {"evaluator": name, "outcome": "scored", "success": value >= 0.5}
        for name, value in scores.items()
    ]


@for_each(
    ("reliability", "turns", "said"),
    [
        (None, [], None),
        (None, [[{"evaluator": "x", "outcome": "skipped", "success": None}]], None),
        (0.9, [rows(confidence=1.0)], "It went well. Every score passed."),
        (
            0.6,
            [rows(step_efficiency=0.1, confidence=1.0)],
            "It went unevenly. These did not pass: step efficiency.",
        ),
        (
            0.1,
            [rows(confidence=0.0, runaway=0.0), rows(confidence=0.0), rows(confidence=1.0)],
            "It went badly. In 2 of 3 traces a score did not pass: confidence (2), runaway (1).",
        ),
        (None, [rows(confidence=1.0)], "Every score passed."),
    ],
)
def test_how_a_session_went_is_said_in_words(
    reliability: float | None, turns: list[list[dict[str, Any]]], said: str | None
) -> None:
    assert verdict(reliability, turns) == said
    passed = verdict(0.9, [rows(confidence=1.0)], is_whole=False)
    assert passed == "It went well. Every score of these traces passed."
    fell = verdict(0.1, [rows(confidence=0.0), rows(confidence=1.0)], is_whole=False)
    assert fell == "It went badly. In 1 of these 2 traces a score did not pass: confidence (1)."


def test_a_long_system_prompt_leaves_the_screen_to_the_conversation() -> None:
    lines = [Line(speaker=who, text="word " * 100) for who in ("system", "user")]

    ((system, user),) = (group["rows"] for group in talk(make.trace(), lines, Sheet("/api")))

    assert (len(system["text"].opening), system["text"].size) == (200, 499)
    assert (len(user["text"].opening), user["text"].rest) == (499, "")


def test_a_long_text_has_an_opening_a_fold_and_what_is_missing() -> None:
    words, tall = "word " * 10_000, "a\n" * 60
    sheet = Sheet("/api", room=OPENING + 10)

    folded, lines = Sheet("/api/v1/traces/ab").long(words), Sheet("/api").long(tall)

    assert folded.opening.endswith("word ")
    assert OPENING - 100 < len(folded.opening) <= OPENING
    assert folded.opening + folded.rest == words[:LONG]
    assert folded.missing == f"{50_000 - LONG:,} more characters; the whole in /api/v1/traces/ab"
    assert lines.opening == ("a\n" * (OPENING // 40)).strip(), "few lines, however short"
    assert lines.opening + lines.rest == tall
    cut = f"{3_000 - OPENING:,} more characters; the whole in /api"
    assert sheet.long("x" * 3_000).missing == cut
    assert sheet.long("y" * 50).missing == "50 characters are not shown; the whole in /api"


@for_each("text", ["", None, "short", "x" * OPENING, "a\n" * 24])
def test_a_short_text_has_no_fold(text: str | None) -> None:
    folded = Sheet("/").long(text)

    assert (folded.opening, folded.rest, folded.missing) == (text or "", "", "")
    assert bool(folded) is bool(text)


@for_each(
    ("value", "success", "colour"),
    [
        (0.0, True, "fair"),  # the same answer twice is not a loop yet
        (0.8, True, "good"),
        (0.9, False, "poor"),
        (0.1, None, "unknown"),  # work_baseline neither passes nor fails
    ],
)
def test_the_colour_of_an_outcome_is_whether_it_passed(
    value: float, success: bool | None, colour: str
) -> None:
    assert standing(value, success) == colour
