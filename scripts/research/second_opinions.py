"""What a judge's second opinion tells, what it costs, and what it leaves of means: the tables of docs/evidence.md.

`python -m scripts.research.second_opinions` prints them (two minutes). The judge is scripted: whether a session failed
decides its answer by a stated accuracy, so that no model is asked. `--labels FILE` adds how well the verdicts in the
labels of a set sort its sessions, and what a session cost them.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

from collector.config.tree import JudgeMore
from collector.records.second_opinion import Verdict, verdict_of
from collector.records.signal import rfc3339
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.windows import ReleaseLook, WindowEntry
from collector.watch.second_opinions import NearAlarm, SecondOpinions
from collector.watch.windows.seen import Seen
from collector.watch.windows.window import Window
from evaluators.formulas.release_verdict import LOOKS, Look, looks_of

NORMAL = NormalDist()
USUAL = 0.2  # share of sessions that fail before a drop
STREAMS = 1_000  # of a cell
AUROC = (0.62, 0.69, 0.93)
"""How well published verdicts of a judge sort failed sessions from good ones, by domain."""
BEFORE = (100, 240)
"""Judged sessions before the drop: of two days and of a week at 960 sessions a day, a sample of .05."""
DAY = 86_400.0  # seconds
AGENT = ("bot", "planner")

Judge = Callable[[random.Random, bool], float]
"""The score of a session that failed, or did not."""


def graded(auroc: float) -> Judge:
    """In hundredths: normal scores whose distance gives the accuracy."""
    distance = math.sqrt(2) * NORMAL.inv_cdf(auroc)
    return lambda rng, failed: round(NORMAL.cdf(rng.gauss(0.0 if failed else distance, 1.0)), 2)


def pass_or_fail(auroc: float) -> Judge:
    """As often wrong about failed sessions as about good ones."""
    return lambda rng, failed: float((rng.random() < auroc) != failed)


JUDGES = {"graded": graded, "pass or fail": pass_or_fail}


class Opinion(NamedTuple):
    verdict: Verdict
    sessions: int  # at the look that decided, or at the last one


def opinion(judge: Judge, rng: random.Random, before: int, then: float) -> Opinion:
    """About a drop since which a share `then` of the sessions fails."""
    earlier = [judge(rng, rng.random() < USUAL) for _ in range(before)]
    later = [judge(rng, rng.random() < then) for _ in range(LOOKS[-1])]
    taken: tuple[Look, ...] = ()
    for look in LOOKS:
        taken = looks_of(later[:look], earlier, taken=taken)
        found = verdict_of(ReleaseLook(each.sessions, *each.rank) for each in taken)
        if found != "undecided":
            return Opinion(found, look)
    return Opinion("undecided", LOOKS[-1])


def opinions(
    make: Callable[[float], Judge], auroc: float, before: int, then: float
) -> list[Opinion]:
    rng = random.Random(f"{make.__name__} {auroc} {before} {then}")  # noqa: S311 - a simulation
    return [opinion(make(auroc), rng, before, then) for _ in range(STREAMS)]


def share(found: Sequence[Opinion], verdict: Verdict, within: int = LOOKS[-1]) -> float:
    return sum(each.verdict == verdict and each.sessions <= within for each in found) / len(found)


def table() -> Iterator[str]:
    yield (
        "| judge | AUROC | before | 20 -> 80 %: confirmed in 40, 160 | 20 -> 50 %: confirmed, not |"
        " 20 -> 25 %: confirmed, not | nothing: confirmed, not | sessions (80, 50, 20 %) |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for kind, make in JUDGES.items():
        for auroc in AUROC:
            for before in BEFORE:
                large, half, mix, none = (
                    opinions(make, auroc, before, then) for then in (0.8, 0.5, 0.25, USUAL)
                )
                sessions = ", ".join(
                    f"{fmean(each.sessions for each in found):.0f}" for found in (large, half, none)
                )
                yield (
                    f"| {kind} | {auroc} | {before} |"
                    f" {share(large, 'confirmed', 40):.1%}, {share(large, 'confirmed'):.1%} |"
                    f" {_both(half)} | {_both(mix)} | {_both(none)} | {sessions} |"
                )


def _both(found: Sequence[Opinion]) -> str:
    return f"{share(found, 'confirmed'):.1%}, {share(found, 'not_confirmed'):.1%}"


# --- a month ---------------------------------------------------------------------------------------------------------


class Month(NamedTuple):
    mean: float  # of the judged gauge, as it stands at the end of each hour
    everything: float  # the same with every session judged
    asked: Counter[int]  # sessions beyond the sample, by day


def month(seed: int, *, sample: float = 0.05, a_day: int = 960) -> Month:
    """Four fifths fail on every third day from noon to six, and the drop stands from two on."""
    rng = random.Random(seed)  # noqa: S311 - a simulation
    judge = graded(0.69)
    settings = JudgeMore(new_version=None, drop=40)
    asking = SecondOpinions(settings, "task_completion", settle=300.0, partitions=1)
    some, every = (Window(sessions=1_000, max_age=DAY) for _ in range(2))
    left, asked = 0, Counter[int]()
    means: list[float] = []
    alls: list[float] = []
    for at in range(30 * a_day):
        now = at * DAY / a_day
        hour = now % DAY / 3600
        drops = now // DAY % 3 == 2 and 12 <= hour < 18
        score = judge(rng, rng.random() < (0.8 if drops else USUAL))
        every.offer(_entry(at, now, score, 1.0))
        is_base = rng.random() < sample
        if is_base or left:
            some.offer(_entry(at, now, score, 1.0 if left else 1 / sample))
            if not is_base:
                left -= 1
                asked[int(now // DAY)] += 1
            asking.take(AGENT, _seen(at, now), _header(at, score, is_base), is_new=True)
        stands = drops and hour >= 14
        alarm = NearAlarm("work_baseline", float(stands), at, now - 7200 if stands else None)
        asking.look(AGENT, [""], [alarm], now)
        for each in asking.requests:
            left = each.sessions
        asking.requests.clear()
        if at % 40 == 39 and now > DAY:
            found, whole = some.stats(now), every.stats(now)
            if found is not None and whole is not None:
                means.append(found.bounds.mean)
                alls.append(whole.bounds.mean)
    return Month(fmean(means), fmean(alls), asked)


def _seen(at: int, now: float) -> Seen:
    return Seen(SubjectHeader("trace", *AGENT, f"s{at}", "session.id", rfc3339(now)), now)


def _header(at: int, score: float, is_base: bool) -> SignalHeader:
    return SignalHeader(
        f"{at:032x}",
        "task_completion",
        "llm_judge",
        "scored",
        final=True,
        score=score,
        first=True,
        sample="base" if is_base else "more",
    )


def _entry(at: int, now: float, score: float, weight: float) -> WindowEntry:
    return WindowEntry(f"s{at}", now, 0, True, f"{at:032x}", score, weight=weight)


def months(count: int = 10) -> Iterator[str]:
    found = [month(seed) for seed in range(count)]
    asked = [sessions for each in found for sessions in each.asked.values()]
    errors = [abs(each.mean - each.everything) for each in found]
    off = f"off by {fmean(errors):.4f}, at most {max(errors):.4f}"
    yield f"{count} months, a drop on every third day: mean of the gauge {off}"
    yield f"sessions beyond the sample on a day with a drop: {fmean(asked):.0f}, at most {max(asked)}"


# --- labels ----------------------------------------------------------------------------------------------------------


def labelled(labels: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Of each published judge: how well it sorts the sessions, and its cost."""
    answers: dict[str, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    costs: dict[str, list[float]] = defaultdict(list)
    for each in labels:
        for name, said in each.get("llm_judge", {}).items():
            answers[name][each["success"], said["passed"]] += 1
            costs[name].append(said["cost_usd"])
    for name, counts in sorted(answers.items()):
        good, bad = (
            counts[of, True] / (counts[of, True] + counts[of, False]) for of in (True, False)
        )
        usd = fmean(costs[name])
        yield (
            f"{name}: AUROC {(1 + good - bad) / 2:.2f}, {usd:.4f} USD a session;"
            f" a drop of 40 to 160 sessions {40 * usd:.2f} to {160 * usd:.2f}, a release of 80 {80 * usd:.2f}"
        )


def tables() -> Iterator[str]:
    if "--labels" in sys.argv:
        text = Path(sys.argv[sys.argv.index("--labels") + 1]).read_text(encoding="utf-8")
        yield from labelled(json.loads(text).values())
    yield from table()
    yield from months()


if __name__ == "__main__":
    sys.stdout.writelines(f"{each}\n" for each in tables())
