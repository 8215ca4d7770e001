"""How numbers, times and names read on the page: the filters of its templates. Pure."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from collector.api.page.sheet import name
from collector.api.viewer_zone import ago, shown_at
from evaluators.counts import amount

MARKED = 40  # names and ids of one text that are marked: each takes more of the page than its text
_MARK = re.compile(r"`(?P<name>[^`\n]{1,200})`|(?P<word>, span )?\b(?P<span>[0-9a-f]{16})\b")


def prose(text: str, spans: Mapping[str, int] = {}) -> Markup:
    """The text, escaped, with its names marked, and the ids of `spans` as their numbers, which lead there.

    Without `spans`, the page shows none: the id of a span that is called one is a title.
    """
    made, place = Markup(""), 0
    for number, found in enumerate(_MARK.finditer(text)):
        if number == MARKED:
            break
        made += escape(text[place : found.start()]) + _marked(found, spans)
        place = found.end()
    return made + escape(text[place:])


def _marked(found: re.Match[str], spans: Mapping[str, int]) -> Markup:
    if name := found["name"]:
        return Markup("<code>{}</code>").format(name)
    word, span = found["word"] or "", found["span"]
    if span in spans:
        return escape(word) + Markup('<a href="#span-{}">{}</a>').format(span, spans[span])
    if word and not spans:
        return Markup(' (<span title="{}">its span</span>)').format(span)
    return escape(word + span)


NOTHING = "\u2013"


def score(value: float | None) -> str:
    """Two decimals, never rounded up to a perfect 1.00; a dash for unknown."""
    if value is None:
        return NOTHING
    text = f"{value:.2f}"
    return "0.99" if text == "1.00" and value < 1 else text


def grade(value: float | None) -> str:
    """The colour of a score: good from 0.8, fair from 0.5, poor below."""
    if value is None:
        return "unknown"
    if value >= 0.8:
        return "good"
    return "fair" if value >= 0.5 else "poor"


def standing(value: float, success: bool | None) -> str:
    """The colour of an outcome: whether it passed decides, and what neither passes nor fails has none."""
    if success is None:
        return "unknown"
    if not success:
        return "poor"
    return "good" if value >= 0.8 else "fair"


def duration(seconds: float) -> str:
    """`0.4 ms`, `340 ms`, `4.2 s`, `3 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{round(seconds * 1000, 1):g} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(text: str | None) -> str:
    """`2026-02-03 14:05:09` in the viewer's zone, its title in UTC, and how long ago; another text stays."""
    if text is None:
        return NOTHING
    try:
        at = datetime.fromisoformat(text)
        utc = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return text[:19].replace("T", " ")
    here = shown_at(utc.timestamp(), "%Y-%m-%d %H:%M:%S")
    title = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    shown = Markup('<time datetime="{}" title="{}">{}</time>').format(
        f"{utc:%Y-%m-%dT%H:%M:%SZ}", title, here
    )
    age = ago(utc.timestamp())
    return shown + Markup(' <small class="ago">{}</small>').format(age) if age else shown


def words(name: str) -> str:
    return name.replace("llm_judge", "LLM judge").replace("_", " ")


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def escaped(value: Any) -> str:
    return quote(str(value), safe="")


def count(number: int) -> str:
    return f"{number:,}"


def usd(value: float) -> str:
    """`$0.0042`: two digits that count, and at least the cents."""
    if value >= 0.1 or value <= 0:
        return f"${value:,.2f}"
    if value >= 0.0001:
        return f"${value:.2g}"
    return f"${value:.6f}" if value >= 0.000001 else "below $0.000001"


def size(number: float) -> str:
    """`12.3 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


FILTERS: dict[str, Callable[..., str]] = {
    "score": score,
    "grade": grade,
    "standing": standing,
    "duration": duration,
    "moment": moment,
    "words": words,
    "capitalised": capitalised,
    "name": name,
    "prose": prose,
    "count": count,
    "amount": amount,
    "usd": usd,
    "size": size,
    "q": escaped,
}
