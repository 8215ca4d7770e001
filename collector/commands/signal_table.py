"""Final signals as lines for people: written session by session, in columns whose width does not depend on them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from rich.cells import cell_len, set_cell_size

from collector.base.printable import one_line
from collector.commands.output import WIDE
from evaluators.counts import amount

LONGEST = 1_000  # characters of a cell that are looked at: an explanation may be long
MOST_ERRORS = 20  # different errors that are printed in full; each row has its own
Shows = Callable[[Mapping[str, Any]], bool]
COLUMNS = ("trace", "evaluator", "method", "score", "reason")
_FIXED = (8, 20, 13, 14)
"""Cells of all columns but the last: `conversation_quality`, `deterministic` and `not_applicable` fit."""
_MORE = 12  # cells that the names of evaluators have more on a wide terminal: third parties' names are long


class SignalTable:
    """One line for each final signal that is shown, under one line for each session that has any.

    A line ends at the width of the terminal, where an ellipsis stands for the rest. Below `WIDE` cells there is no
    column for the method: the reason needs its room.

    Args:
        stream: Where lines are written.
        width: Cells of a line, at least 80.
        shows: Which signals have a line; None: none has, failing sessions are only counted.
    """

    def __init__(self, stream: TextIO, width: int, *, shows: Shows | None) -> None:
        self._stream = stream
        self._width = width
        trace, evaluator, method, shown = _FIXED
        is_wide = width >= WIDE
        self._has_method = is_wide
        self._fixed = (
            (trace, evaluator + _MORE, method, shown) if is_wide else (trace, evaluator, shown)
        )
        self._shows = shows
        self._sessions = 0
        self._failing = 0
        self._errors: Counter[str] = Counter()
        if shows is not None:
            self._line(*COLUMNS)

    def add(self, service: str, session_id: str, signals: Iterable[Mapping[str, Any]]) -> None:
        every = tuple(signals)
        self._sessions += 1
        self._failing += any(map(fails, every))
        for signal in every:
            if signal["outcome"] == "failed":
                self._count(f"{signal['evaluator']} failed: {reason(signal)}")
        shown = [] if self._shows is None else [*filter(self._shows, every)]
        if shown:
            head = _cut(f"{service}: session {session_id}", self._width)
            self._stream.write(f"\n{head.rstrip()}\n")
        for signal in shown:
            self._line(
                signal["trace_id"] or "session",
                signal["evaluator"],
                signal["method"],
                score(signal),
                reason(signal),
            )

    def end(self) -> None:
        """How many sessions fail; each error once, in a line that is as long as it must be, and how often it came."""
        is_list = self._shows is not None
        hint = "" if is_list or not self._failing else "; `--failed` lists where and why"
        before = "\n" if is_list else ""
        self._stream.write(
            f"{before}{self._failing} of {amount(self._sessions, 'session')} failed somewhere{hint}\n\n"
        )
        for text, count in self._errors.items():
            times = "" if count == 1 else f" ({count} times)"
            self._stream.write(f"{_flat(text)}{times}\n")
        if self._errors:
            self._stream.write("\n")

    def _count(self, text: str) -> None:
        if text in self._errors or len(self._errors) < MOST_ERRORS:
            self._errors[text] += 1

    def _line(self, trace: str, evaluator: str, method: str, score: str, reason: str) -> None:
        rest = self._width - sum(self._fixed) - len(self._fixed)
        widths = (*self._fixed, rest)
        trace = trace[: widths[0]]  # a trace id is known by its beginning
        cells = (trace, evaluator, *([method] if self._has_method else []), score, reason)
        columns = [_cut(text, width) for text, width in zip(cells, widths, strict=True)]
        self._stream.write(" ".join(columns).rstrip() + "\n")


def fails(signal: Mapping[str, Any]) -> bool:
    """Whether its score is below its threshold, or there is none because of an error."""
    return signal["success"] is False or signal["outcome"] == "failed"


def score(signal: Mapping[str, Any]) -> str:
    if signal["score"] is None:
        return signal["outcome"]
    verdict = {True: " pass", False: " fail", None: ""}[signal["success"]]
    return f"{signal['score']:.4f}{verdict}"


def reason(signal: Mapping[str, Any]) -> str:
    """Why there is no score: the error or the reason; and what the evaluator says about its outcome."""
    error: Mapping[str, str] = signal["error"] or {}
    said = (error.get("type"), error.get("message"), signal["reason"], signal["explanation"])
    return ": ".join(text for text in said if text)


def _cut(text: str, width: int) -> str:
    """One line of exactly so many cells."""
    flat = _flat(text)
    if cell_len(flat) <= width:
        return set_cell_size(flat, width)
    return set_cell_size(flat, width - 1) + "…"


def _flat(text: str) -> str:
    return one_line(" ".join(text[:LONGEST].split()))
