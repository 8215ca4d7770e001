"""What scoring gives: final signals, as a list that a notebook shows as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = 20
"""Failed signals that a notebook lists; `failed()` has all."""


class Scores(Sequence[Mapping[str, Any]]):
    """Final signals, session by session in the order in which the sessions end: those of traces, then the session's.

    Each is a mapping with the fields of the signal's schema (docs/signals.md).
    """

    def __init__(self, signals: Iterable[Mapping[str, Any]]) -> None:
        self._signals = tuple(signals)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Scores: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Scores:
        if isinstance(index, slice):
            return Scores(self._signals[index])
        return self._signals[index]

    def __len__(self) -> int:
        return len(self._signals)

    def of(self, evaluator: str) -> Scores:
        """The signals of one evaluator."""
        return Scores(each for each in self if each["evaluator"] == evaluator)

    def failed(self) -> Scores:
        """Those whose score is below its threshold. What could not be measured is not among them."""
        return Scores(each for each in self if each["success"] is False)

    def to_pandas(self) -> DataFrame:
        """One row for each signal, a column for each of its fields; `time` as a timestamp in UTC.

        What could not be measured has no score: pandas leaves it out of means.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas  # noqa: PLC0415 - for those alone who ask for it

        frame = pandas.DataFrame(list(map(dict, self)))
        return frame.astype({"score": float, "time": "datetime64[us, UTC]"}) if len(self) else frame

    def __repr__(self) -> str:
        return f"Scores({len(self)} signals, {len(self.failed())} failed)"

    def _repr_html_(self) -> str:
        """What a notebook shows: each evaluator, then the first failed signals."""
        failed = self.failed()
        rest = len(failed) - SHOWN
        more = f"<p>and {rest} more: <code>failed()</code> has all</p>" if rest > 0 else ""
        shown = (
            _table(("session", "trace", "evaluator", "score", "why"), map(_row, failed[:SHOWN]))
            if failed
            else ""
        )
        return _table(("evaluator", "scored", "mean", "failed"), self._summary()) + shown + more

    def _summary(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for name in sorted({each["evaluator"] for each in self}):
            signals = self.of(name)
            values = [each["score"] for each in signals if each["score"] is not None]
            mean = f"{fmean(values):.4f}" if values else ""
            rows.append(
                (name, f"{len(values)} of {len(signals)}", mean, str(len(signals.failed())))
            )
        return rows


def _row(signal: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        signal["session_id"],
        (signal["trace_id"] or "")[:8],
        signal["evaluator"],
        f"{signal['score']:.4f}",
        signal["explanation"] or "",
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Texts of traces are escaped."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(each)}</td>' for each in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
