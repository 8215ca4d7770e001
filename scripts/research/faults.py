"""The tables of docs/alerting.md about faults: the service's own watches, fed with simulated and with real sessions.

`python -m scripts.research.faults` prints the rows that need nothing else (a minute).
`python -m scripts.research.faults --cancelled` prints those of the watch of stopped runs, of which an agent has one.
`python -m scripts.research.faults FOLDER` prints those of real sessions: each recording in FOLDER is a service, whose
sessions are drawn again and again and in which faults are planted.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi
from pathlib import Path
from statistics import median

import numpy as np

import spanwise
from collector.service.recordings import find
from evaluators.formulas.fault_watch import FaultWatch
from evaluators.matching.tool_uses import tool_uses
from scripts.research.many_watches import Flags, ManyWatches, Numbers

A_DAY = 960
STEP = 86_400 / A_DAY
"""Seconds between two sessions."""
MONTH = 28_800
"""Sessions of an agent in 30 days."""
TOOLS = 10
PATIENCE = 300
"""Sessions after which a fault counts as not noticed."""

Chance = Callable[[Flags, int], Numbers | float]
"""How likely each use fails, by whether the one before it did, and by the number of the use."""


def independent(rate: float) -> Chance:
    """Each use fails by itself."""
    return lambda _failed, _use: rate


def swinging(rate: float) -> Chance:
    """The rate rises and falls by half of itself over the day."""
    return lambda _failed, use: rate * (1 + 0.5 * cos(2 * pi * use / A_DAY))


def clumped(rate: float, mean: float) -> Chance:
    """Failures come in runs of that mean length, so that the rate is the same."""
    begins, goes_on = rate / mean / (1 - rate), 1 - 1 / mean
    return lambda failed, _use: np.where(failed, goes_on, begins)


SIMULATED: Mapping[str, Chance] = {
    **{f"{100 * rate:g} % fail, independent": independent(rate) for rate in (0.01, 0.05, 0.2, 0.4)},
    "10 % fail, half as much and half more over the day": swinging(0.1),
    **{
        f"{100 * rate:g} % fail, in clumps of mean {mean}": clumped(rate, mean)
        for mean, rate in ((2, 0.02), (2, 0.1), (3, 0.02), (3, 0.05))
    },
}


MANY = "in clumps of mean 3"
"""Rows that have one false alarm a month or so."""


def histories(chances: Sequence[Chance], count: int, length: int, seed: int = 0) -> Iterator[Flags]:
    """Use by use, which of that many histories of each chance fail."""
    rng = np.random.default_rng(seed)
    failed = np.zeros((len(chances), count), bool)
    for use in range(length):
        rates = [
            np.broadcast_to(of(last, use), count) for of, last in zip(chances, failed, strict=True)
        ]
        failed = rng.random(failed.shape) < np.stack(rates)
        yield failed.ravel()


def false_alarms(
    chances: Sequence[Chance], months: int, tools: int = TOOLS, *, of_people: bool = False
) -> Numbers:
    """In MONTH sessions of an agent with that many tools, each used in every session: the mean, for each chance."""
    each = months * tools
    watches = ManyWatches(each * len(chances), step=STEP, of_people=of_people)
    raised = np.zeros(each * len(chances))
    for failed in histories(chances, each, MONTH):
        raised += watches.feed(failed)
    return raised.reshape(len(chances), each).sum(axis=1) / months


def doubled(share: float, past: int, runs: int) -> list[int | None]:
    """After how many sessions it is noticed that a share of stopped runs doubles; None: not within PATIENCE."""
    watches = ManyWatches(runs, step=STEP, of_people=True)
    for failed in histories([independent(share)], runs, past):
        watches.feed(failed)
    found: list[int | None] = [None] * runs
    for at, failed in enumerate(histories([independent(2 * share)], runs, PATIENCE, seed=1), 1):
        for run in np.flatnonzero(watches.feed(failed)):
            found[run] = found[run] or at
    return found


def cancelled_rows() -> Iterator[str]:
    yield "| share of runs that people stop | noticed within 300 sessions, median |"
    yield "|---|---|"
    for share, past in ((0.2, 300), (0.2, 1000), (0.1, 300), (0.1, 1000), (0.1, 3000)):
        found = [each or PATIENCE + 1 for each in doubled(share, past, 2000)]
        seen = sum(each <= PATIENCE for each in found) / len(found)
        middle = f", {median(found):.0f}" if seen > 0.5 else ""
        shares = f"{100 * share:g} %, then {200 * share:g} %"
        yield f"| {shares}, after {past:,} sessions | {100 * seen:.0f} %{middle} |"
    yield "| runs that people stop | false alarms in 28,800 sessions |"
    yield "|---|---|"
    found = false_alarms([*SIMULATED.values()], 200, tools=1, of_people=True)
    yield from (f"| {name} | {each:.2f} |" for name, each in zip(SIMULATED, found, strict=True))


def simulated_rows() -> Iterator[str]:
    """Rows of the table of false alarms of simulated uses."""
    yield f"| uses, {TOOLS} tools an agent | false alarms in {MONTH:,} sessions |"
    yield "|---|---|"
    found = dict(zip(SIMULATED, false_alarms([*SIMULATED.values()], 40), strict=True))
    # The mean of 40 months with one alarm each is exact to .16, of 160 to .08.
    many = {name: chance for name, chance in SIMULATED.items() if name.endswith(MANY)}
    found |= zip(many, false_alarms([*many.values()], 160), strict=True)
    yield from (f"| {name} | {each:.2f} |" for name, each in found.items())


# --- real sessions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Used:
    """What a real session did."""

    tools: dict[str, tuple[int, bool, bool, bool]]
    """By tool: calls, whether one failed, whether one returned anything, whether that was nothing."""
    model_failed: bool


@dataclass(frozen=True, slots=True)
class Plant:
    """A fault: which watch sees it, and in which sessions it lets a use fail, of that many calls."""

    name: str
    fault: str
    fails: Callable[[random.Random, int], bool]


PLANTS = (
    Plant("a tool fails everywhere", "tool_failed", lambda _rng, _calls: True),
    Plant("it fails for one tenant in five", "tool_failed", lambda rng, _: rng.random() < 0.2),
    Plant("half of its calls fail", "tool_failed", lambda rng, calls: rng.random() > 0.5**calls),
    Plant("it returns nothing", "tool_empty", lambda _rng, _calls: True),
    Plant("half of its calls do", "tool_empty", lambda rng, calls: rng.random() > 0.5**calls),
    Plant("model calls fail in 40 %", "model_failed", lambda rng, _: rng.random() < 0.4),
    Plant("model calls fail in 20 %", "model_failed", lambda rng, _: rng.random() < 0.2),
)


def services(folder: Path) -> dict[str, list[Used]]:
    """By file, its sessions."""
    found: dict[str, list[Used]] = {}
    for path in find([folder]).files:
        sessions: defaultdict[str, list[spanwise.Trace]] = defaultdict(list)
        for trace in spanwise.read(path):
            sessions[trace.session_id].append(trace)
        found[path.name.partition(".")[0]] = [_used(each) for each in sessions.values()]
    return found


def _used(traces: Sequence[spanwise.Trace]) -> Used:
    calls = [call for trace in traces for call in trace.tool_calls]
    models = (call for trace in traces for call in trace.model_calls)
    return Used(
        {
            each.tool: (each.calls, each.failed, each.returned, each.empty)
            for each in tool_uses(calls)
        },
        any(call.error is not None for call in models),
    )


class Agent:
    """An agent with a watch for each of its tools and faults."""

    def __init__(self, sessions: Sequence[Used], rng: random.Random) -> None:
        self.rng = rng
        self.watches: dict[tuple[str, str], FaultWatch] = {}
        self.raised: list[tuple[str, str]] = []
        self.uses: dict[tuple[str, str], int] = defaultdict(int)
        self._sessions = sessions
        self._number = 0

    def serve(self, plant: Plant | None = None, tool: str = "") -> None:
        """One more session, with a fault in it."""
        used, hit = self.rng.choice(self._sessions), (plant.fault, tool) if plant else None
        uses: dict[tuple[str, str], tuple[int, bool]] = {
            ("model_failed", ""): (1, used.model_failed)
        }
        for name, (calls, failed, returned, empty) in used.tools.items():
            uses["tool_failed", name] = (calls, failed)
            if returned:
                uses["tool_empty", name] = (calls, empty)
        self._number += 1
        for key, (calls, failed) in uses.items():
            fails = key == hit and plant is not None and plant.fails(self.rng, calls)
            self._feed(key, failed or fails)

    def _feed(self, key: tuple[str, str], failed: bool) -> None:
        watch = self.watches.get(key)
        if watch is None:
            watch = self.watches[key] = FaultWatch()
        before, now = watch.state.fault, self._number * STEP
        watch.feed(failed, now, now)
        self.uses[key] += 1
        if before is None and watch.state.fault is not None:
            self.raised.append(key)


@dataclass(frozen=True, slots=True)
class Noticed:
    """What became of one planted fault."""

    sessions: int | None
    """After which it was named; None: not within PATIENCE."""
    uses: int
    named: tuple[tuple[str, str], ...]
    """What was named instead."""


def noticed(sessions: Sequence[Used], plant: Plant, past: int, seed: str) -> Noticed:
    """Plant a fault in a tool that every fifth session uses, at least, after a past of that many sessions."""
    rng = random.Random(seed)  # noqa: S311 - the same table every time
    counts: defaultdict[str, int] = defaultdict(int)
    for each in sessions:
        for tool in each.tools:
            counts[tool] += 1
    tool = rng.choice([name for name, count in counts.items() if 5 * count >= len(sessions)])
    hit = (plant.fault, "" if plant.fault == "model_failed" else tool)
    agent = Agent(sessions, rng)
    for _ in range(past):
        agent.serve()
    agent.raised.clear()
    before = agent.uses[hit]
    for number in range(1, PATIENCE + 1):
        agent.serve(plant, hit[1])
        if hit in agent.raised:
            return Noticed(number, agent.uses[hit] - before, _others(agent, hit))
    return Noticed(None, agent.uses[hit] - before, _others(agent, hit))


def real_rows(of: dict[str, list[Used]], *, each: int = 20, months: int = 5) -> Iterator[str]:
    """Rows of the table of real sessions."""
    yield "| planted | past of | noticed within 300 sessions | median sessions, uses | another named |"
    yield "|---|---|---|---|---|"
    some = {name: sessions for name, sessions in of.items() if len(sessions) >= PATIENCE // 3}
    for plant in PLANTS:
        for past in (400, 1000):
            found = [
                noticed(sessions, plant, past, f"{name} {number}")
                for name, sessions in some.items()
                for number in range(each)
            ]
            seen = [one for one in found if one.sessions is not None]
            sessions = median(one.sessions or 0 for one in seen) if seen else 0
            uses = median(one.uses for one in seen) if seen else 0
            others = sum(len(one.named) for one in found)
            share = f"{len(seen) / len(found):.0%} of {len(found)}"
            yield f"| {plant.name} | {past} | {share} | {sessions:.0f}, {uses:.0f} | {others} |"
    for name, sessions in some.items():
        false = 0
        for month in range(months):
            agent = Agent(sessions, random.Random(f"{name} {month}"))  # noqa: S311
            for _ in range(MONTH):
                agent.serve()
            false += len(agent.raised)
        yield f"| nothing, {name} | | {false / months:.2f} false alarms in {MONTH:,} sessions | | |"


def _others(agent: Agent, hit: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(key for key in agent.raised if key != hit)


if __name__ == "__main__":
    _folders = [each for each in sys.argv[1:] if not each.startswith("-")]
    _rows = (
        real_rows(services(Path(_folders[0])))
        if _folders
        else cancelled_rows()
        if "--cancelled" in sys.argv
        else simulated_rows()
    )
    for _row in _rows:
        print(_row)  # noqa: T201
