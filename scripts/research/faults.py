"""The tables of docs/alerting.md about faults: the service's own watches, fed with simulated and with real sessions.

`python -m scripts.research.faults` prints the rows that need nothing else (a minute; `--short`: some seconds).
`python -m scripts.research.faults --cancelled` prints those of the watch of stopped runs, of which an agent has one.
`python -m scripts.research.faults FOLDER` prints those of real sessions: each recording in FOLDER is a service, whose
sessions are drawn again and again and in which faults are planted.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi
from pathlib import Path
from statistics import median

import spanwise
from collector.service.recordings import find
from evaluators.formulas.fault_watch import FaultWatch
from evaluators.matching.tool_uses import tool_uses

A_DAY = 960
STEP = 86_400 / A_DAY
"""Seconds between two sessions."""
MONTH = 28_800
"""Sessions of an agent in 30 days."""
TOOLS = 10
PATIENCE = 300
"""Sessions after which a fault counts as not noticed."""

Uses = Iterator[bool]
"""Whether each use of one tool failed, in order."""


def independent(rng: random.Random, rate: float) -> Uses:
    """Each use fails by itself."""
    while True:
        yield rng.random() < rate


def swinging(rng: random.Random, rate: float) -> Uses:
    """The rate rises and falls by half of itself over the day."""
    use = 0
    while True:
        use += 1
        yield rng.random() < rate * (1 + 0.5 * cos(2 * pi * use / A_DAY))


def clumped(rng: random.Random, rate: float, mean: float) -> Uses:
    """Failures come in runs of that mean length, so that the rate is the same."""
    begins, goes_on = rate / mean / (1 - rate), 1 - 1 / mean
    failed = False
    while True:
        failed = rng.random() < (goes_on if failed else begins)
        yield failed


SIMULATED: tuple[tuple[str, Callable[[random.Random], Uses]], ...] = (
    *(
        (f"{100 * rate:g} % fail, independent", lambda rng, rate=rate: independent(rng, rate))
        for rate in (0.01, 0.05, 0.2, 0.4)
    ),
    ("10 % fail, half as much and half more over the day", lambda rng: swinging(rng, 0.1)),
    *(
        (
            f"{100 * rate:g} % fail, in clumps of mean {mean}",
            lambda rng, rate=rate, mean=mean: clumped(rng, rate, mean),
        )
        for mean, rate in ((2, 0.02), (2, 0.1), (3, 0.02), (3, 0.05))
    ),
)


def raised(uses: Iterable[bool], *, of_people: bool = False) -> int:
    """How often a watch raises an alarm over these uses."""
    watch, found = FaultWatch(of_people=of_people), 0
    for number, failed in enumerate(uses):
        before = watch.state.fault
        watch.feed(failed, number * STEP, number * STEP)
        found += before is None and watch.state.fault is not None
    return found


def false_alarms(make: Callable[[random.Random], Uses], months: int) -> float:
    """In MONTH sessions of an agent with TOOLS tools, each used in every session."""
    rngs = [random.Random(f"{month} {tool}") for month in range(months) for tool in range(TOOLS)]  # noqa: S311
    return sum(raised(_first(make(rng), MONTH)) for rng in rngs) / months


def doubled(share: float, past: int, runs: int) -> list[int | None]:
    """After how many sessions it is noticed that a share of stopped runs doubles; None: not within PATIENCE."""
    found: list[int | None] = []
    for run in range(runs):
        rng, watch = random.Random(run), FaultWatch(of_people=True)  # noqa: S311
        for number in range(past):
            watch.feed(rng.random() < share, number * STEP, number * STEP)
        since = range(past, past + PATIENCE)
        events = (watch.feed(rng.random() < 2 * share, at * STEP, at * STEP) for at in since)
        found.append(next((at for at, each in enumerate(events, 1) if each == "raised"), None))
    return found


def cancelled_rows() -> Iterator[str]:
    yield "| runs that people stop | noticed within 300 sessions, median |"
    yield "|---|---|"
    for share, past in ((0.2, 300), (0.2, 1000), (0.1, 1000), (0.1, 3000)):
        found = [each or PATIENCE + 1 for each in doubled(share, past, 200)]
        seen = sum(each <= PATIENCE for each in found) / len(found)
        middle = f", {median(found):.0f}" if seen > 0.5 else ""
        yield f"| {share:.0%}, {2 * share:.0%} after {past:,} sessions | {seen:.0%}{middle} |"
    yield "| runs that people stop | false alarms in 28,800 sessions |"
    yield "|---|---|"
    for name, make in SIMULATED:
        months = [
            raised(_first(make(random.Random(month)), MONTH), of_people=True)  # noqa: S311
            for month in range(20)
        ]
        yield f"| {name} | {sum(months) / len(months):.2f} |"


def simulated_rows(*, short: bool) -> Iterator[str]:
    """Rows of the table of false alarms of simulated uses."""
    yield f"| uses, {TOOLS} tools an agent | false alarms in {MONTH:,} sessions |"
    yield "|---|---|"
    for name, make in SIMULATED[:2] if short else SIMULATED:
        yield f"| {name} | {false_alarms(make, 1 if short else 10):.1f} |"


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


def _first(uses: Uses, count: int) -> Iterator[bool]:
    return (next(uses) for _ in range(count))


if __name__ == "__main__":
    _folders = [each for each in sys.argv[1:] if not each.startswith("-")]
    _rows = (
        real_rows(services(Path(_folders[0])))
        if _folders
        else cancelled_rows()
        if "--cancelled" in sys.argv
        else simulated_rows(short="--short" in sys.argv)
    )
    for _row in _rows:
        print(_row)  # noqa: T201
