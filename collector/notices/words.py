"""The words of an alert's texts as they are for a notice: the values themselves (`collector/slo/words.py`). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote_plus

from collector.notices.series import Growth, Series
from collector.slo.words import AlertQuery, Words

UNKNOWN = "unknown"


class LiveWords:
    """See `Words`."""

    def __init__(self, series: Series, labels: Mapping[str, str], value: float) -> None:
        self._series = series
        self._labels = labels
        self._value = value

    def label(self, name: str) -> str:
        return self._labels.get(name, "")

    def quoted(self, name: str) -> str:
        return quote_plus(self.label(name))

    def value(self, shape: str) -> str:
        return shown(self._value, shape)

    def ask(self, query: AlertQuery | str, shape: str) -> str:
        """See `Words`.

        Raises:
            LookupError: only Prometheus could answer.
        """
        if isinstance(query, str):
            raise LookupError(f"only Prometheus knows {query}")
        if query.is_increase:
            match = tuple((name, frozenset({value})) for name, value in query.labels.items())
            by = tuple(self._labels)
            grown = self._series.grown(Growth(query.family, by, match))
            return shown(grown.get(tuple(self._labels.values()), 0.0), shape)
        match = {**self._labels, **query.labels}
        value = self._series.largest(query.family, (), match).get(())
        return UNKNOWN if value is None else shown(value, shape)

    def each(
        self,
        query: AlertQuery,
        by: tuple[str, ...],
        of: tuple[str, ...],
        text: Callable[[Words], str],
    ) -> str:
        match = {name: self.label(name) for name in of}
        rows = self._series.largest(query.family, by, {**match, **query.labels})
        if query.where is not None:
            also = self._series.largest(query.where, by, match)
            rows = {group: value for group, value in rows.items() if also.get(group, 0.0) > 0}
        return "".join(
            text(LiveWords(self._series, dict(zip(by, group, strict=True)), value))
            for group, value in sorted(rows.items())
        )

    def when(self, label: str, texts: Mapping[str, str], otherwise: str = "") -> str:
        return texts.get(self.label(label), otherwise)

    def given(self, label: str, text: str, otherwise: str = "") -> str:
        return text if self.label(label) else otherwise

    def above(self, limit: float, text: str, otherwise: str = "") -> str:
        return text if self._value > limit else otherwise


def shown(value: float, shape: str) -> str:
    """A number as Prometheus's function of this name writes it."""
    if shape == "humanizeTimestamp":
        return f"{datetime.fromtimestamp(int(value), UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"
    if shape == "humanizeDuration":
        return _duration(int(value))
    return shape % value


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours}h {minutes}m {rest}s"
    if hours:
        return f"{hours}h {minutes}m {rest}s"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"
