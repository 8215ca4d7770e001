"""Charts as paths: numbers in, what an SVG draws out. Pure.

A plot is `WIDTH` by `HEIGHT` units, whatever its size on the screen; the template stretches it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

WIDTH, HEIGHT = 1000.0, 100.0
WIDE, NARROW = 0.7, 2.3
"""What a letter of a label takes of the width of a chart, in per cent: 6.5 of 930 pixels, and of 280 on a phone."""
Values = Sequence[float | None]
"""One for each part of the time; None: nothing is known of it."""


class ChartLine(NamedTuple):
    name: str
    kind: str  # a class of the style sheet
    path: str


class Hover(NamedTuple):
    """A part of the time with what it says when the pointer rests there."""

    left: float
    width: float
    text: str


Kind = Literal["fault", "drop", "better", "past", "release"]


class ChartMark(NamedTuple):
    at: str  # where it is, in per cent of the width
    kind: Kind
    text: str
    label: str  # the same as short as a chart has room for
    anchor: Literal["start", "end"]
    row: int = 0  # labels that would overlap are below each other: 0 is the first row
    is_close: bool = False
    """On a narrow screen the label would overlap another one, and is left out there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    name: str
    summary: str  # the chart in words, for who cannot see it
    labels: tuple[str, str, str]  # of the top, the middle and the bottom
    lines: tuple[ChartLine, ...]
    band: str = ""
    bars: str = ""
    hovers: tuple[Hover, ...] = ()


def across(at: int, parts: int) -> float:
    return round((at + 0.5) / parts * WIDTH, 1)


def down(value: float, top: float) -> float:
    """How far below the upper edge a value is; values beyond the edges are on them."""
    return round(HEIGHT * (1 - min(1.0, max(0.0, value / top))), 1)


def line(values: Values, top: float) -> str:
    """The path through the parts that have a value; one alone is a dash as long as its part."""
    points = [
        (across(at, len(values)), down(value, top))
        for at, value in enumerate(values)
        if value is not None
    ]
    if not points:
        return ""
    if len(points) == 1:
        (x, y), half = points[0], WIDTH / (2 * len(values))
        points = [(max(0, x - half), y), (min(WIDTH, x + half), y)]
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def level(value: float, begins: float, top: float) -> str:
    """A straight line at a value, from a place between 0 and 1 to the end."""
    return f"M{WIDTH * begins:g} {down(value, top):g}H{WIDTH:g}"


def band(lower: Values, upper: Values, top: float) -> str:
    width = WIDTH / max(1, len(lower))
    runs: list[list[tuple[int, float, float]]] = []
    for at, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if low is None or high is None:
            continue
        if not runs or runs[-1][-1][0] != at - 1:
            runs.append([])
        runs[-1].append((at, down(low, top), down(high, top)))
    areas: list[str] = []
    for run in runs:
        edges = [run[0][0] * width, *(across(at, len(lower)) for at, _, _ in run)]
        edges.append((run[-1][0] + 1) * width)
        highs = [run[0][2], *(high for _, _, high in run), run[-1][2]]
        lows = [run[0][1], *(low for _, low, _ in run), run[-1][1]]
        there = [*zip(edges, highs, strict=True)]
        back = [*zip(edges, lows, strict=True)][::-1]
        areas.append("M" + "L".join(f"{x:.1f} {y:g}" for x, y in (*there, *back)) + "Z")
    return "".join(areas)


def bars(values: Values, top: float) -> str:
    """A bar in each part that has a value above 0."""
    width = WIDTH / max(1, len(values))
    drawn = [
        f"M{at * width + 0.1 * width:.1f} {HEIGHT:g}V{down(value, top):g}h{0.8 * width:.1f}V{HEIGHT:g}Z"
        for at, value in enumerate(values)
        if value
    ]
    return "".join(drawn)


def hovers(texts: Sequence[str | None]) -> tuple[Hover, ...]:
    width = WIDTH / max(1, len(texts))
    return tuple(
        Hover(round(at * width, 1), round(width, 1), text)
        for at, text in enumerate(texts)
        if text is not None
    )


def round_top(values: Values) -> float:
    """The upper edge for these values: 1, 2, 2.5 or 5 times a power of ten; 1 for nothing."""
    most = max((value for value in values if value is not None and math.isfinite(value)), default=0)
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next((step * power for step in (1.0, 2.0, 2.5, 5.0) if most <= step * power), 10 * power)


def mark(at: float, kind: Kind, texts: Sequence[str]) -> ChartMark:
    """A mark at a place from 0 to 1; its label is where there is more room."""
    first, *more = texts
    return ChartMark(
        at=f"{100 * at:.2f}%",
        kind=kind,
        text=", ".join(texts),
        label=f"{first} +{len(more)}" if more else first,
        anchor="end" if at > 0.5 else "start",
    )


def apart(marks: Sequence[ChartMark]) -> list[ChartMark]:
    found: list[ChartMark] = []
    for each in marks:
        beside = [other for other in found if (other.kind == "release") == (each.kind == "release")]
        taken = {other.row for other in beside if _overlap(each, other, WIDE)}
        row = next(row for row in range(len(beside) + 1) if row not in taken)
        is_close = any(_overlap(each, other, NARROW) for other in beside if not other.is_close)
        found.append(each._replace(row=row, is_close=is_close))
    return found


def _overlap(one: ChartMark, other: ChartMark, letter: float) -> bool:
    (first, last), (begin, end) = _extent(one, letter), _extent(other, letter)
    return first < end and begin < last


def _extent(mark: ChartMark, letter: float) -> tuple[float, float]:
    at, width = float(mark.at.removesuffix("%")), letter * (len(mark.label) + 2)
    return (at - width, at) if mark.anchor == "end" else (at, at + width)
