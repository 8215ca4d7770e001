"""The tables of docs/alerting.md about drops: the service's own code, fed with simulated sessions.

`python -m scripts.research.drops` prints all of them (minutes); `--short` only the rows that take a second each;
`--external` the table of docs/external-evaluators.md, about the values that evaluators of others give (a minute).
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import cos, pi
from pathlib import Path
from statistics import median

from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import DAY

QUANTILES = Path(__file__).parents[2] / "tests" / "data" / "score_quantiles.json"
"""Quantiles of the scores of labelled runs that succeeded and that failed; docs/alerting.md says of which."""
MONDAY = 19_996 * DAY
"""The midnight at which each simulation begins; days are counted from it."""
MONTH = 30 * DAY
NEVER = 1_000
"""Sessions after which a drop counts as not noticed."""
LONGEST = 10_000
"""Sessions after which the end of an alarm is no longer waited for: more than come in a week."""
WELL_SORTED = "telecom, work_baseline"
"""The kind of scores that sorts failed sessions best."""
USUAL = 0.2
"""Share of sessions that fail before a drop."""

Draw = Callable[[random.Random, float], float]
"""A score in [0, 1] of a session at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """When sessions come, and of which kind: two domains whose mix changes with the time of day and the weekday."""

    name: str
    a_day: float
    swing: float = 0.0
    """How far the rate rises and falls over the day, as a share of it."""
    mix: tuple[float, float] = (0.5, 0.5)
    """The least and the greatest share of the second domain over the day."""
    weekend: float | None = None
    """Its share on Saturdays and Sundays, where it is another."""
    apart: float = 0.0
    """How much higher its scores are, in standard deviations."""
    runs: int = 20
    days: int = 60
    cheap: bool = False

    def times(self, rng: random.Random, days: float, start: float = MONDAY) -> Iterator[float]:
        """Arrival times: a Poisson process."""
        time, most = start, self.a_day * (1 + self.swing)
        while True:
            time += rng.expovariate(most) * DAY
            if time >= start + days * DAY:
                return
            if rng.random() * most <= self.a_day * (1 + self.swing * cos(_turn(time, 14))):
                yield time

    def score(self, rng: random.Random, time: float) -> float:
        """Normal around the middle of its domain."""
        low, high = self.mix
        share = low + (high - low) * (0.5 + 0.5 * cos(_turn(time, 14)))
        if self.weekend is not None and (time - MONDAY) // DAY % 7 >= 5:
            share = self.weekend
        score = rng.gauss(self.apart * (rng.random() < share), 1.0)
        return min(1.0, max(0.0, 0.5 + score / 10))


_DAILY = (0.15, 0.85)
TRAFFIC = (
    Traffic(name="960 a day, steady", a_day=960),
    Traffic(
        name="12 to 68 an hour, mix of domains 15-85 % over the day",
        a_day=960,
        swing=0.7,
        mix=_DAILY,
        apart=0.3,
    ),
    Traffic(
        name="the same, another mix at weekends",
        a_day=960,
        swing=0.7,
        mix=_DAILY,
        weekend=0.85,
        apart=0.3,
    ),
    Traffic(
        name="2,000 a day, the same, domains 0.6 standard deviations apart",
        a_day=2000,
        swing=0.7,
        mix=_DAILY,
        weekend=0.85,
        apart=0.6,
    ),
    Traffic(
        name="12 to 68 an hour, domains one standard deviation apart",
        a_day=960,
        swing=0.7,
        mix=_DAILY,
        apart=1.0,
    ),
    *(
        Traffic(
            name=f"{a_day} a day, mix of domains 15-85 %, another at weekends",
            a_day=a_day,
            swing=0.7,
            mix=_DAILY,
            weekend=0.85,
            apart=0.6,
            runs=runs,
            days=120 if a_day < 70 else 60,
            cheap=True,
        )
        for a_day, runs in ((5, 20), (20, 10), (70, 8))
    ),
)


def _seeded(name: str) -> random.Random:
    """The same numbers every time."""
    return random.Random(name)  # noqa: S311


def _turn(time: float, noon: float) -> float:
    return 2 * pi * ((time / DAY) % 1 - noon / 24)


@dataclass(slots=True)
class FalseAlarms:
    """Alarms while nothing changes, by 30 days since the first session."""

    worse: list[int] = field(default_factory=list[int])
    better: list[int] = field(default_factory=list[int])


@cache
def false_alarms(traffic: Traffic, runs: int | None = None, days: int | None = None) -> FalseAlarms:
    """Counted over all runs, each an agent of its own."""
    days = days or traffic.days
    found = FalseAlarms([0] * (days // 30), [0] * (days // 30))
    for run in range(runs or traffic.runs):
        rng, past, alarmed = _seeded(f"{traffic.name} {run}"), OwnPast(), (False, False)
        for number, time in enumerate(traffic.times(rng, days)):
            past.feed(f"{run}-{number}", traffic.score(rng, time), time, "1")
            now = (past.worse is not None, past.better is not None)
            if now != alarmed:
                month = int((time - MONDAY) // MONTH)
                found.worse[month] += now[0] and not alarmed[0]
                found.better[month] += now[1] and not alarmed[1]
                alarmed = now
    return found


@dataclass(frozen=True, slots=True)
class Kind:
    """Scores of sessions that succeed and of those that fail, as quantiles at even steps from 0 to 1."""

    good: Sequence[float]
    failed: Sequence[float]
    steps: int = 0
    """Values come in so many even steps; 0: in none."""

    def draw(self, rng: random.Random, failing: float) -> float:
        """A score, where that share of the sessions fails."""
        values = self.failed if rng.random() < failing else self.good
        at = rng.random() * (len(values) - 1)
        low = values[int(at)]
        value = low + (values[int(at) + 1] - low) * (at % 1)
        return round(value * self.steps) / self.steps if self.steps else value


def kinds(path: Path = QUANTILES) -> dict[str, Kind]:
    """By name, the kinds of scores that stand in a file."""
    return {
        name: Kind(each["good"], each["failed"])
        for name, each in json.loads(path.read_text()).items()
    }


@dataclass(slots=True)
class Agent:
    """An agent whose sessions come evenly, and a part of which fail."""

    kind: Kind
    a_day: float
    rng: random.Random
    past: OwnPast = field(default_factory=OwnPast)
    time: float = MONDAY
    sessions: int = 0

    def run(self, failing: float, version: str = "1") -> None:
        """One session."""
        self.time += DAY / self.a_day
        self.sessions += 1
        score = self.kind.draw(self.rng, failing)
        self.past.feed(f"{self.rng.random()}", score, self.time, version)

    def after(
        self, is_over: Callable[[], bool], failing: float, version: str, most: int = NEVER
    ) -> int:
        """Sessions until something is so; `most` when it does not come before."""
        for count in range(1, most):
            self.run(failing, version)
            if is_over():
                return count
        return most

    def branch(self, number: int) -> Agent:
        """The agent with its past, whose future is another."""
        rng = _seeded(f"branch {number}")
        return Agent(self.kind, self.a_day, rng, copy.deepcopy(self.past), self.time)


def steady(kind: Kind, a_day: float, *, days: float, count: int) -> list[Agent]:
    """Agents with a past of some days in which nothing changed; those with a false alarm are left out."""
    found: list[Agent] = []
    for number in range(count):
        agent = Agent(kind, a_day, _seeded(f"past {number}"))
        while agent.time < MONDAY + days * DAY:
            agent.run(USUAL)
        if agent.past.worse is None and agent.past.better is None:
            found.append(agent)
    return found


def futures(pasts: Iterable[Agent], each: int) -> Iterator[Agent]:
    """Several futures of each past."""
    return (past.branch(number) for past in pasts for number in range(each))


def noticed(some: Iterable[Agent], failing: float) -> list[int]:
    """By agent, sessions from a drop on until it is noticed."""
    return [
        each.after(lambda past=each.past: past.worse is not None, failing, "2") for each in some
    ]


@cache
def delay(name: str, a_day: float, failing: float) -> float:
    """Median sessions from a drop on until it is noticed, for scores of that kind."""
    return median(noticed(futures(_pasts(name, a_day), 9), failing))


@cache
def _pasts(name: str, a_day: float) -> Sequence[Agent]:
    is_busy = a_day > 70
    # Of the first two weeks a Friday: hours of weekends have had one weekend then (docs/alerting.md).
    return steady(kinds()[name], a_day, days=11 if is_busy else 60, count=10 if is_busy else 4)


ENDS = {
    "a fixed version": ("3", USUAL),
    "back to the version before": ("1", USUAL),
    "the same version works again": ("2", USUAL),
    "a new version, as bad": ("3", 0.8),
    "nothing changes": ("2", 0.8),
}
"""What follows an alarm: the version, and the share of its sessions that fail."""


def cleared(some: Iterable[Agent], version: str, failing: float) -> list[float]:
    """By agent, days from the change after an alarm, 20 sessions later, until the alarm ends."""
    days: list[float] = []
    for agent in some:
        past = agent.past
        agent.after(lambda past=past: past.worse is not None, 0.8, "2")
        for _ in range(20):
            agent.run(0.8, "2")
        start = agent.time
        agent.after(lambda past=past: past.worse is None, failing, version, LONGEST)
        days.append((agent.time - start) / DAY)
    return days


def false_alarm_rows(*, short: bool) -> Iterator[str]:
    """Rows of the table of false alarms."""
    yield "| sessions | simulated | worse: first 30 days, later | better: first 30 days, later |"
    yield "|---|---|---|---|"
    for each in TRAFFIC:
        if short and not each.cheap:
            continue
        found = false_alarms(each)
        later = each.runs * (each.days // 30 - 1)
        cells = [
            f"{counts[0] / each.runs:.2f}, {sum(counts[1:]) / later:.2f}"
            for counts in (found.worse, found.better)
        ]
        yield f"| {each.name} | {each.runs} agents, {each.days} days | {' | '.join(cells)} |"


def noticed_rows(*, short: bool) -> Iterator[str]:
    """Rows of the table of delays."""
    yield "| scores | sessions a day | 20 % -> 50 % failing: median sessions | -> 80 % |"
    yield "|---|---|---|---|"
    for name in kinds():
        for a_day in (5, 20, 70, 960) if name == WELL_SORTED else (70, 960):
            if short and a_day > 70:
                continue
            cells: list[str] = []
            for failing in (0.5, 0.8):
                middle = delay(name, a_day, failing)
                days = f"{middle:.0f} ({middle / a_day:.2g} days)"
                cells.append("not noticed" if middle >= NEVER else days)
            yield f"| {name} | {a_day} | {' | '.join(cells)} |"


def external_rows(a_day: float = 70, agents: int = 8) -> Iterator[str]:
    """Rows of the table of scores of others: values without steps, as scores of ours are, grades, passed or not."""
    ours = kinds()[WELL_SORTED]
    some = {
        "0 to 1": ours,
        "1 to 5, whole numbers": replace(ours, steps=4),
        "pass or fail": replace(ours, steps=1),
        "pass or fail, always right": Kind((1.0, 1.0), (0.0, 0.0)),
    }
    yield "| values | alarms per agent and 30 days | 20 % -> 50 % failing: median sessions | -> 80 % |"
    yield "|---|---|---|---|"
    for name, kind in some.items():
        alarms = 0
        for number in range(agents):
            agent = Agent(kind, a_day, _seeded(f"external {number}"))
            while agent.time < MONDAY + 2 * MONTH:
                was = agent.past.worse is not None
                agent.run(USUAL)
                alarms += agent.past.worse is not None and not was
        pasts = steady(kind, a_day, days=30, count=4)
        middles = [median(noticed(futures(pasts, 9), failing)) for failing in (0.5, 0.8)]
        cells = ["not noticed" if each >= NEVER else f"{each:.0f}" for each in middles]
        yield f"| {name} | {alarms / agents / 2:.2f} | {' | '.join(cells)} |"


def cleared_rows(*, short: bool) -> Iterator[str]:
    """Rows of the table of what ends an alarm."""
    yield "| after the alarm | 10 a day: median days | 70 a day | 960 a day |"
    yield "|---|---|---|---|"
    pasts = [_pasts(WELL_SORTED, a_day)[:4] for a_day in ((10,) if short else (10, 70, 960))]
    for name, (version, failing) in ENDS.items():
        cells = [f"{median(cleared(futures(some, 5), version, failing)):.2g}" for some in pasts]
        yield f"| {name} | {' | '.join(cells)} |"


def tables(*, short: bool) -> str:
    """All tables in Markdown."""
    parts = (false_alarm_rows(short=short), noticed_rows(short=short), cleared_rows(short=short))
    return "\n\n".join("\n".join(part) for part in parts)


if __name__ == "__main__":
    is_external = "--external" in sys.argv
    shown = "\n".join(external_rows()) if is_external else tables(short="--short" in sys.argv)
    sys.stdout.write(shown + "\n")
