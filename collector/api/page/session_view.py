"""One session as its page shows it: how it went, and each trace with its question, its answer and its scores. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from collector.api.page.sheet import PAGE, Sheet, name
from collector.api.page.signal_rows import failing, runs_away, signal_rows, verdict, why_no_scores
from collector.api.query import SessionShown, TraceShown, session_shown

TRACES = 200
"""Traces of a session that the page shows: the newest."""
OTHERS = 20
"""Services with a session of the same id that the page names."""


def session_view(shown: SessionShown, others: Sequence[str] = ()) -> dict[str, Any]:
    """A session with its newest traces, and `others`, the services that have one of the same id.

    `shown` holds its newest traces, all of them or TRACES.
    """
    whole = session_shown(shown)
    turns = cast(list[dict[str, Any]], whole["traces"])
    count = max(shown.entry.traces, len(turns))
    numbered = list(zip(range(count - len(turns) + 1, count + 1), turns, shown.traces, strict=True))
    head = Sheet(f"/api/v1/sessions/{name(whole['session_id'])}", PAGE // 4)
    body = Sheet(head.whole, PAGE - PAGE // 4)
    newest = body.rows(reversed(numbered), lambda row: _turn(body, *row), cost=1_000, most=TRACES)
    return {
        **whole,
        "unscored": shown.entry.unscored if shown.entry.reliability is None else None,
        "signals": signal_rows(shown.signals, head),
        "verdict": verdict(shown.entry.reliability, [turn["signals"] for turn in newest]),
        "others": others[:OTHERS],
        "more_others": len(others[OTHERS:]),
        "left_out": count - len(newest),
        "traces": newest[::-1],
    }


def _turn(sheet: Sheet, number: int, turn: dict[str, Any], trace: TraceShown) -> dict[str, Any]:
    whole = f"/api/v1/traces/{turn['trace_id']}"
    signals = signal_rows(trace.signals, sheet, whole)
    why = why_no_scores(signals)
    return {
        **turn,
        **{key: sheet.long(turn[key], whole) for key in ("input", "output")},
        "error": sheet.text(turn["error"], whole),
        "number": number,
        "signals": signals,
        "failing": failing(signals),
        "runs_away": runs_away(signals),
        "unscored": why and sheet.name(why),
    }
