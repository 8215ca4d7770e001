"""Signals as rows of the page: what explains each, the spans that show it, and what they say together. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from collector.api.page.sheet import Sheet
from collector.api.page.views import words

EVIDENCE = 12  # spans that a row names; the API has the rest
Named = tuple[int, str]  # a span's number on the page, and its name
_ORDER = {"scored": 0, "failed": 1, "measured": 2, "skipped": 3, "not_applicable": 4}


def signal_rows(
    raw: Sequence[msgspec.Raw],
    sheet: Sheet,
    whole: str | None = None,
    spans: Mapping[str, Named] | None = None,
) -> list[dict[str, Any]]:
    """Decoded; a stand-in whose verdict has come is left out, the worst score comes first.

    `sheet`: where they are put. `whole`: where the API has the whole of them, if not where the sheet says. `spans`: the
    spans that the page shows, by id: evidence that can be linked to. None: another page shows them.
    """
    signals = [cast(dict[str, Any], msgspec.json.decode(signal)) for signal in raw]
    final = {signal["evaluator"] for signal in signals if signal["final"]}
    shown = [s for s in signals if s["final"] or s["evaluator"] not in final]

    def row(signal: dict[str, Any]) -> dict[str, Any]:
        known = [each for each in signal["evidence"] if spans is None or each in spans]
        return {
            **signal,
            "evaluator": sheet.name(signal["evaluator"]),
            "because": sheet.text(_because(signal), whole),
            "evidence": [
                {"id": sheet.name(each)} | _named(each, spans) for each in known[:EVIDENCE]
            ],
            "more_evidence": len(known[EVIDENCE:]),
        }

    return sheet.rows(sorted(shown, key=_worst_first), row, cost=900)


def _named(span_id: str, spans: Mapping[str, Named] | None) -> dict[str, Any]:
    number, name = (0, "") if spans is None else spans[span_id]
    return {"number": number, "name": name}


def _because(signal: dict[str, Any]) -> Any:
    """What explains the signal: its error, its explanation, its reason, or what was measured."""
    if signal["error"]:
        kind, message = words(signal["error"]["type"]), signal["error"]["message"]
        return f"{kind}: {message}" if message else kind
    if signal["explanation"]:
        return signal["explanation"]
    if signal["reason"]:
        return words(signal["reason"])
    return signal["metadata"] if signal["outcome"] == "measured" else None


def _worst_first(signal: dict[str, Any]) -> tuple[int, bool, float, str]:
    value = signal["score"] if signal["score"] is not None else 0.0
    place = _ORDER.get(signal["outcome"], len(_ORDER))
    return place, signal["success"] is not False, value, signal["evaluator"]


def runs_away(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the trace was found to run away, and has not closed since."""
    return any(
        each["evaluator"] == "runaway" and not each["final"] and each["success"] is False
        for each in rows
    )


def failing(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in rows if each["success"] is False or each["outcome"] == "failed"]


def why_no_scores(rows: Sequence[dict[str, Any]]) -> str | None:
    """What most of a trace's signals say when none of them is a score or a failure."""
    if any(each["outcome"] in {"scored", "failed"} for each in rows):
        return None
    reasons = Counter(each["because"] for each in rows if each["reason"] is not None)
    return reasons.most_common(1)[0][0] if reasons else None


def verdict(
    reliability: float | None, turns: Sequence[Sequence[dict[str, Any]]], *, is_whole: bool = True
) -> str | None:
    """How a session went, in a sentence or two; None: nothing was scored.

    `reliability`: of the session; None: it has none. `turns`: the rows of each of its traces. `is_whole`: whether these
    are all of its traces.
    """
    scored = [rows for rows in turns if any(each["outcome"] == "scored" for each in rows)]
    if not scored:
        return None
    below = ([each["evaluator"] for each in rows if each["success"] is False] for rows in scored)
    fell = [names for names in below if names]
    most = Counter(name for names in fell for name in names).most_common(3)
    counted = ", ".join(f"{words(name)} ({count})" for name, count in most)
    these, of_these = ("", "") if is_whole else ("these ", "of these traces ")
    if not fell:
        share = f"Every score {of_these}passed"
    elif len(scored) == 1:
        share = f"These did not pass: {', '.join(words(name) for name, _ in most)}"
    else:
        share = f"In {len(fell)} of {these}{len(scored)} traces a score did not pass: {counted}"
    return f"{_went(reliability)}{share}."


def _went(reliability: float | None) -> str:
    if reliability is None:
        return ""
    if reliability >= 0.8:
        return "It went well. "
    return "It went badly. " if reliability < 0.5 else "It went unevenly. "
