"""One session as its page shows it: how it went, and each trace with its question, its answer and its scores. Pure."""

from itertools import count
from typing import Any, cast

from collector.api.page.feedback_pages import said_view
from collector.api.page.sheet import PAGE, Sheet, name
from collector.api.page.signal_rows import failing, runs_away, signal_rows, verdict, why_no_scores
from collector.api.query import SessionPart, TraceShown, session_shown
from collector.api.store import SessionEntry

TRACES = 50  # traces of a session that one page shows; earlier ones have pages of their own
OTHERS = 20  # services with a session of the same id that the page names


def session_view(part: SessionPart) -> dict[str, Any]:
    """A session with some of its traces; where these do not fit on the page, the earliest of them are left out."""
    shown = part.shown
    whole = session_shown(shown)
    turns = cast(list[dict[str, Any]], whole["traces"])
    numbered = list(zip(count(part.earlier + 1), turns, shown.traces, strict=False))
    head = Sheet(f"/api/v1/sessions/{name(whole['session_id'])}", PAGE // 4)
    body = Sheet(head.whole, PAGE - PAGE // 4)
    fitting = body.rows(reversed(numbered), lambda row: _turn(body, *row), cost=1_000)
    of = max(shown.entry.traces, part.earlier + len(turns))
    return {
        **whole,
        "tokens": tokens_of(shown.entry),
        "unscored": shown.entry.unscored if shown.entry.reliability is None else None,
        "signals": signal_rows(shown.signals, head),
        "verdict": verdict(
            shown.entry.reliability,
            [turn["signals"] for turn in fitting],
            is_whole=len(fitting) == of,
        ),
        "said": said_view(shown.feedback, head),
        "others": part.others[:OTHERS],
        "more_others": len(part.others[OTHERS:]),
        "of": of,
        "later": of - part.earlier - len(turns),
        "earlier": part.earlier + len(turns) - len(fitting),
        "traces": fitting[::-1],
    }


def tokens_of(entry: SessionEntry) -> int | None:
    """Of its traces together, input and output; None: none of them says."""
    known = [each for each in (entry.input_tokens, entry.output_tokens) if each is not None]
    return sum(known) if known else None


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
