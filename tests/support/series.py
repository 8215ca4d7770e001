"""promtool's notation of series, as the samples of each minute."""

import re
from collections.abc import Iterator, Mapping

from collector.notices.series import SeriesSample

_PART = re.compile(r"(-?[\d.]+|NaN|_|stale)(?:([+-][\d.]+))?(?:x(\d+))?")


def values(text: str) -> list[float | None]:
    """One a minute; None: there is none then."""
    found: list[float | None] = []
    for part in text.split():
        match = _PART.fullmatch(part)
        assert match is not None, part
        first, step, times = match[1], float(match[2] or 0), int(match[3] or 0)
        if first in ("_", "stale"):
            found += [None] * max(1, times)
        else:
            found += [float(first) + step * at for at in range(times + 1)]
    return found


def labels_of(series: str) -> tuple[str, dict[str, str]]:
    """The family and the labels of `family{name="value",...}`."""
    family, _, inside = series.partition("{")
    pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', inside)
    return family, {name: value.replace('\\"', '"') for name, value in pairs}


def minutes(series: Mapping[str, str], last: int) -> Iterator[list[SeriesSample]]:
    """The samples of each minute from 0 to `last`."""
    expanded = [(*labels_of(name), values(text)) for name, text in series.items()]
    for minute in range(last + 1):
        yield [
            SeriesSample(family, labels, value)
            for family, labels, points in expanded
            if minute < len(points) and (value := points[minute]) is not None
        ]
