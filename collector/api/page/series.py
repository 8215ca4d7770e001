"""The charts of an agent, from the sessions of each part of the time. Pure."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from collector.api.charts import Point
from collector.api.page import chart
from collector.api.page.chart import Chart, ChartLine, Values
from collector.api.page.timespan import Timespan
from collector.records.moved import EvaluatorScores, share_failing
from collector.records.standing import WindowMean
from evaluators.counts import amount
from evaluators.formulas.distribution import bounds, percentile

Parts = Sequence[Sequence[Point]]
Words = Callable[[float], str]
"""How a value reads."""
ENOUGH = 60  # scores with which 95 % bounds say something
ALARM = 1_000  # thousandths of progress at which an alarm is raised
TOGETHER = (1, 2, 3, 4, 6)  # parts that may share their bounds
PASSED = 0.5  # the reliability from which on a session passed: the threshold of `agent_reliability`


def reliability(parts: Parts, span: Timespan, headline: WindowMean | None = None) -> Chart:
    """The mean of each part, over the 95 % bounds of as many parts together as bounds need sessions.

    A headline of the sessions since a change is a line of its own, from the change on.
    """
    scores = [*_known(parts, lambda point: point.reliability)]
    means = [fmean(each) if each else None for each in scores]
    together = _together([len(each) for each in scores])
    found = [
        bounds([score for each in scores[at : at + together] for score in each])
        for at in range(0, len(scores), together)
    ]
    texts = [
        None
        if mean is None or (around := found[at // together]) is None
        else f"{mean:.2f}, bounds {around.lower:.2f} to {around.upper:.2f}"
        for at, mean in enumerate(means)
    ]
    lines = [ChartLine("mean", "main", chart.line(means, 1.0))]
    said = summary("Reliability", means, lambda value: f"{value:.2f}")
    if headline is not None and headline.since is not None:
        name = f"since the change: {headline.mean:.2f}"
        begins = span.place(headline.since) or 0.0
        lines.append(ChartLine(name, "since", chart.level(headline.mean, begins, 1.0)))
        said = f"{said}; {name}"
    return Chart(
        name="Reliability",
        summary=said,
        labels=("1", ".5", "0"),
        lines=tuple(lines),
        band=chart.band(
            [each and each.lower for each in found], [each and each.upper for each in found], 1.0
        ),
        hovers=_hovers(texts, parts, span),
    )


def _together(counts: Sequence[int]) -> int:
    """How many parts share their bounds: the fewest with which half of what has sessions has ENOUGH of them."""
    for each in TOGETHER:
        sums = [sum(counts[at : at + each]) for at in range(0, len(counts), each)]
        known = sorted(count for count in sums if count)
        if known and known[len(known) // 2] >= ENOUGH:
            return each
    return TOGETHER[-1]


def detector(values: Values, span: Timespan, evaluator: str) -> Chart:
    edges = span.edges
    texts = [
        None if value is None else f"{span.clock(edges[at])}: {100 * value:.0f} % of the way"
        for at, value in enumerate(values)
    ]
    return Chart(
        name=f"Drop detector of {evaluator}",
        summary=summary(f"Progress to an alarm of {evaluator}", values, percent),
        labels=("alarm", "", "0"),
        lines=(ChartLine(evaluator, "detector", chart.line(values, 1.0)),),
        hovers=chart.hovers(texts),
    )


def amounts(
    name: str, named: Mapping[str, Values], parts: Parts, span: Timespan, words: Words
) -> Chart:
    """Lines of amounts that begin at 0; the first one is the main one."""
    top = chart.round_top([value for values in named.values() for value in values])
    kinds = ("main", "second")
    texts = [
        ", ".join(
            f"{each} {words(value)}" if len(named) > 1 else words(value)
            for each, values in named.items()
            if (value := values[at]) is not None
        )
        or None
        for at in range(len(parts))
    ]
    return Chart(
        name=name,
        summary="; ".join(
            summary(f"{name} {each}", values, words) for each, values in named.items()
        ),
        labels=(words(top), words(top / 2), "0"),
        lines=tuple(
            ChartLine(each, kind, chart.line(values, top))
            for kind, (each, values) in zip(kinds, named.items(), strict=False)
        ),
        hovers=_hovers(texts, parts, span),
    )


def traffic(counts: Sequence[int], span: Timespan) -> Chart:
    top = chart.round_top([float(each) for each in counts])
    edges = span.edges
    texts = [
        f"{span.clock(edges[at])}: {amount(count, 'session')}" for at, count in enumerate(counts)
    ]
    return Chart(
        name="Sessions",
        summary=f"{amount(sum(counts), 'session')}, at most {max(counts, default=0)} in one part",
        labels=(f"{top:g}", f"{top / 2:g}", "0"),
        lines=(),
        bars=chart.bars([float(each) for each in counts], top),
        hovers=chart.hovers(texts),
    )


def per_session(parts: Parts, value: Callable[[Point], float | None]) -> list[float | None]:
    return [fmean(known) if known else None for known in _known(parts, value)]


def _known(parts: Parts, value: Callable[[Point], float | None]) -> Iterator[list[float]]:
    for part in parts:
        yield [each for point in part if (each := value(point)) is not None]


def per_success(parts: Parts) -> list[float | None]:
    """The cost of all sessions of which cost and reliability are known, over those that passed."""
    found: list[float | None] = []
    for part in parts:
        known = [
            (point.cost, point.reliability >= PASSED)
            for point in part
            if point.cost is not None and point.reliability is not None
        ]
        passed = sum(success for _, success in known)
        found.append(math.fsum(cost for cost, _ in known) / passed if passed else None)
    return found


def at_percentile(
    parts: Parts, value: Callable[[Point], float | None], p: float
) -> list[float | None]:
    return [percentile(known, p) if known else None for known in _known(parts, value)]


def seconds_per_trace(point: Point) -> float | None:
    return None if point.seconds is None else point.seconds / max(1, point.traces)


def progress(trail: Iterable[tuple[int, int]], edges: Sequence[float]) -> list[float | None]:
    """How near an alarm was in each part: the most in it, else what it was before; None before the first score."""
    points = list(trail)
    values: list[float | None] = []
    last: float | None = None
    at = 0
    while at < len(points) and points[at][0] < edges[0]:
        last = points[at][1] / 1000
        at += 1
    for _, end in pairwise(edges):
        most = -1.0
        while at < len(points) and points[at][0] < end:
            last = points[at][1] / 1000
            most = max(most, last)
            at += 1
        values.append(most if most >= 0 else last)
    return values


def past_alarms(trail: Iterable[tuple[int, int]]) -> list[float]:
    """When an alarm was raised that is over now, Unix seconds, the newest first."""
    raised: list[float] = []
    is_active = False
    for time, step in trail:
        if step >= ALARM and not is_active:
            raised.append(float(time))
        is_active = step >= ALARM
    return raised[-2::-1] if is_active else raised[::-1]


def failing(
    evaluator: str, parts: Sequence[Sequence[Mapping[str, EvaluatorScores]]]
) -> list[float | None]:
    return [share_failing(each[evaluator] for each in part if evaluator in each) for part in parts]


def thousands(value: float) -> str:
    """`840`, `12.5k`, `3.1M`."""
    for least, unit in ((1e6, "M"), (1e4, "k")):
        if value >= least:
            return f"{value / (1e6 if unit == 'M' else 1e3):.1f}{unit}".replace(".0", "")
    return f"{value:.0f}"


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _hovers(texts: Sequence[str | None], parts: Parts, span: Timespan) -> tuple[chart.Hover, ...]:
    edges = span.edges
    return chart.hovers(
        [
            text and f"{span.clock(edges[at])}: {text} ({amount(len(parts[at]), 'session')})"
            for at, text in enumerate(texts)
        ]
    )


def summary(name: str, values: Values, words: Words) -> str:
    """A line in words, for who cannot see it."""
    known = [value for value in values if value is not None]
    if not known:
        return f"{name}: nothing is known in this time"
    return (
        f"{name}: now {words(known[-1])}, lowest {words(min(known))}, highest {words(max(known))}"
    )
