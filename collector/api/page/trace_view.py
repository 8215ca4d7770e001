"""One trace as its page shows it: scores, the conversation, the tree of spans. Pure."""

from __future__ import annotations

from typing import Any

from collector.api.held_feedback import said_by_people
from collector.api.page.feedback_pages import said_view
from collector.api.page.session_view import TRACES
from collector.api.page.sheet import PAGE, Sheet, left_out
from collector.api.page.signal_rows import failing, runs_away, signal_rows, why_no_scores
from collector.api.page.span_tree import span_rows, span_shown
from collector.api.page.talk import talk
from collector.api.traces import FullTrace
from evaluators.dialects.exchanged import read_exchanged
from evaluators.dialects.reading_order import Line, reading_order

SPANS = 400
"""Spans that the tree shows; the API has the rest."""
GAPS = 20
MAX_READ = 16 << 20
"""Bytes of raw spans whose messages are read for a page; of larger traces the answers and tool calls are shown."""


def trace_view(full: FullTrace) -> dict[str, Any]:
    """A trace with its conversation and its span tree."""
    header, whole = full.shown.entry.header, full.trace
    address = f"/api/v1/traces/{header.trace_id}"
    head, spoken, tree, said = (Sheet(address, PAGE * part // 16) for part in (2, 4, 4, 6))
    rows = span_rows(full.spans)
    spans = tree.rows(rows, lambda row: span_shown(row, tree, said), cost=700, most=SPANS)
    numbered = {span["id"]: (span["row"].number, span["name"]) for span in spans}
    signals = signal_rows(full.shown.signals, head, spans=numbered)
    why = why_no_scores(signals)
    lines = _lines(full)
    groups = talk(full.whole, lines, spoken)
    return {
        "header": header,
        "before": full.shown.before,
        "after": full.shown.after,
        "is_old": full.shown.later >= TRACES,
        "whole": address,
        "error": head.text(whole["error"]),
        **{key: head.long(whole[key]) for key in ("input", "output")},
        "models": head.text(", ".join(whole["models"])),
        "tokens": whole["tokens"],
        "cost": whole["cost_usd"],
        "gaps": [head.name(gap) for gap in whole["gaps"][:GAPS]],
        "seconds": max(0, header.end_time_unix_nano - header.start_time_unix_nano) / 1e9,
        "signals": signals,
        "failing": failing(signals),
        "said": said_view(full.shown.feedback, head),
        "outcome": said_by_people(full.shown.feedback),
        "unscored": why and head.name(why),
        "runs_away": runs_away(signals),
        "is_open": full.shown.entry.row.offset is None,
        "talk": groups,
        "lines_left_out": len(lines) - sum(len(group["rows"]) for group in groups),
        "rows": spans,
        "shown_spans": {span_id: number for span_id, (number, _) in numbered.items()},
        "left_out": left_out(rows, spans),
        "expired": not full.spans,
        "has_recording": bool(full.pieces),
    }


def _lines(full: FullTrace) -> tuple[Line, ...]:
    """Without messages where they are too many to read, or the spans are gone or not to be shown."""
    small = sum(map(len, full.pieces)) <= MAX_READ
    pieces = full.pieces if small else ()
    return reading_order(full.whole, read_exchanged(pieces, trace_id=full.whole.trace_id))
