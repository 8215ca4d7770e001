"""What a judge's second opinion tells, what it costs, and what it leaves of means: the tables of docs/evidence.md.

`python -m scripts.research.second_opinions` prints them (a minute). The judge is scripted: whether a session
failed decides its answer by a stated accuracy, so that no model is asked. `--labels FILE` adds how well the verdicts in
the labels of a set sort its sessions, and what a session cost them.
"""

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collector.config.tree import JudgeMore
from collector.records.signal import rfc3339
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.windows import WindowEntry
from collector.watch.second_opinions import NearAlarm, SecondOpinions
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.window import Window
from evaluators.formulas.release_verdict import LOOKS, Look, Z
from evaluators.formulas.second_opinion import CONFIRMS, Verdict, verdict_of
from scripts.research.drops import USUAL

NORMAL = NormalDist()
STREAMS = 2_000  # of a cell: a share of 2 % is known to .3
AUROC = (0.62, 0.69, 0.93)
"""How well published verdicts of a judge sort failed sessions from good ones, by domain."""
BEFORE = (100, 240)
"""Judged sessions before the drop: of two days and of a week at 960 sessions a day, a sample of .05."""
SMALL, LARGE = 0.5, 0.8
"""What fails since a drop."""
DAY = 86_400.0  # seconds
AGENT = ("bot", "planner")

Scores = NDArray[np.int64]
"""Whole hundredths; by stream, where there are several, in order of time."""
Judge = Callable[[np.random.Generator, NDArray[np.bool_]], Scores]
"""The scores of sessions, by whether each failed."""
ROUNDED = np.array([NORMAL.inv_cdf((each + 0.5) / 100) for each in range(100)])
"""Normal scores from which a grade is a hundredth more."""


def graded(auroc: float) -> Judge:
    """In hundredths: normal scores whose distance gives the accuracy."""
    distance = math.sqrt(2) * NORMAL.inv_cdf(auroc)

    def judge(rng: np.random.Generator, failed: NDArray[np.bool_]) -> Scores:
        normal = rng.standard_normal(failed.shape) + np.where(failed, 0.0, distance)
        return np.searchsorted(ROUNDED, normal)

    return judge


def pass_or_fail(auroc: float) -> Judge:
    """As often wrong about failed sessions as about good ones."""
    return lambda rng, failed: 100 * ((rng.random(failed.shape) < auroc) != failed)


def seeded(name: str) -> np.random.Generator:
    """The same numbers every time."""
    return np.random.default_rng([*name.encode()])


JUDGES = {"graded": graded, "pass or fail": pass_or_fail}


class Opinion(NamedTuple):
    verdict: Verdict
    sessions: int  # at the look that decided, or at the last one


def looks(earlier: Scores, later: Scores) -> list[list[Look]]:
    """Of each stream, what `opinion_looks` finds; all streams at once are a hundred times as fast."""
    by_look = [_bounds(later[:, :sessions], earlier) for sessions in LOOKS]
    return [
        [Look(sessions, *bounds) for sessions, bounds in zip(LOOKS, each, strict=True)]
        for each in zip(*by_look, strict=True)
    ]


def _bounds(since: Scores, before: Scores) -> Iterator[tuple[float, float, float]]:
    """Of each stream the rank and its bounds."""
    above = np.take_along_axis(_shares_below(before), since, 1)
    below = 1 - np.take_along_axis(_shares_below(since), before, 1)
    rank = above.mean(1)
    error = np.sqrt(sum(each.var(1, ddof=1) / each.shape[1] for each in (above, below)))
    sizes = since.shape[1], before.shape[1]
    count = sum(sizes)
    ties = np.array([(each**3 - each).sum() for each in _counts(np.hstack((before, since)))])
    alike = np.sqrt((count + 1 - ties / (count * (count - 1))) / (12 * math.prod(sizes)))
    lower = np.maximum(0.0, rank - Z * error)
    upper = np.minimum(1.0, rank + CONFIRMS[sizes[0]] * alike)
    return zip(rank.tolist(), lower.tolist(), upper.tolist(), strict=True)


def _counts(scores: Scores) -> Scores:
    """Of each stream, how many sessions have each score."""
    return np.array([np.bincount(each, minlength=101) for each in scores])


def _shares_below(scores: Scores) -> NDArray[np.float64]:
    """Of each stream, by score: the share of scores that are lower, those that are equal count half."""
    counts = _counts(scores)
    return (counts.cumsum(1) - counts / 2) / scores.shape[1]


def opinions_of(earlier: Scores, later: Scores) -> list[Opinion]:
    """Of each stream, by the service's own rule."""
    return [next(_opinions(each)) for each in looks(earlier, later)]


def _opinions(looks: Sequence[Look]) -> Iterator[Opinion]:
    for each in looks:
        if (found := verdict_of([each])) != "undecided":
            yield Opinion(found, each.sessions)
    yield Opinion("undecided", LOOKS[-1])


@cache
def opinions(
    make: Callable[[float], Judge], auroc: float, before: int, then: float
) -> Sequence[Opinion]:
    """About drops since which a share `then` of the sessions fails."""
    rng = seeded(f"{make.__name__} {auroc} {before} {then}")
    judge = make(auroc)
    earlier, later = (
        judge(rng, rng.random((STREAMS, count)) < failing)
        for count, failing in ((before, USUAL), (LOOKS[-1], then))
    )
    return opinions_of(earlier, later)


def share(found: Sequence[Opinion], verdict: Verdict, within: int = LOOKS[-1]) -> float:
    return sum(each.verdict == verdict and each.sessions <= within for each in found) / len(found)


def table() -> Iterator[str]:
    yield (
        "| judge | AUROC | before | 20 -> 80 %: confirmed in 40, in 160, not | 20 -> 50 %: confirmed, not |"
        " 20 -> 25 %: confirmed, not | nothing: confirmed, not | sessions (80, 50, 20 %) |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for (kind, make), auroc, before in product(JUDGES.items(), AUROC, BEFORE):
        found = [opinions(make, auroc, before, then) for then in (LARGE, SMALL, 0.25, USUAL)]
        large, half, mix, none = (
            ", ".join(f"{share(each, verdict):.1%}" for verdict in ("confirmed", "not_confirmed"))
            for each in found
        )
        sessions = (f"{fmean(each.sessions for each in found[at]):.0f}" for at in (0, 1, 3))
        yield (
            f"| {kind} | {auroc} | {before} | {share(found[0], 'confirmed', 40):.1%}, {large} |"
            f" {half} | {mix} | {none} | {', '.join(sessions)} |"
        )


def best(auroc: float, sessions: int, *, usual: float, then: float, false: float) -> float:
    """The chance that a share `then` of failures is told from `usual` by the best test there is (Neyman and Pearson).

    One look, a judge that passes or fails, and both of its shares are known. Where the share is `usual`, it is wrong in
    a share `false`.
    """
    none, some = (binomial(sessions, _failed(auroc, share)) for share in (usual, then))
    return _power(none, some, false) if then > usual else _power(none[::-1], some[::-1], false)


def best_beside(auroc: float, sessions: int, before: int, *, then: float, false: float) -> float:
    """The same where only `before` sessions say what was usual: no unbiased test does better (Fisher's exact one).

    E. L. Lehmann, Testing Statistical Hypotheses, 4.5.
    """
    later, earlier = (
        binomial(count, _failed(auroc, share))
        for count, share in ((sessions, then), (before, USUAL))
    )
    total = 0.0
    for failed in range(sessions + before + 1):
        counts = range(max(0, failed - before), min(sessions, failed) + 1)
        ways = [math.comb(sessions, each) * math.comb(before, failed - each) for each in counts]
        none = [each / math.comb(sessions + before, failed) for each in ways]
        some = [later[each] * earlier[failed - each] for each in counts]
        total += _power(none, some, false)
    return total


def _power(none: Sequence[float], some: Sequence[float], false: float) -> float:
    """Of the chances `some` those of the highest counts, which have a chance `false` in `none`."""
    left, power = false, 0.0
    for usual, then in zip(reversed(none), reversed(some), strict=True):
        part = min(1.0, left / usual) if usual else 1.0
        left, power = left - part * usual, power + part * then
    return power


def _failed(auroc: float, share: float) -> float:
    """The share that a judge fails which is as often wrong about failed sessions as about good ones."""
    return share * auroc + (1 - share) * (1 - auroc)


def binomial(count: int, share: float) -> list[float]:
    return [
        math.comb(count, each) * share**each * (1 - share) ** (count - each)
        for each in range(count + 1)
    ]


def bounds() -> Iterator[str]:
    """What no test can do, whatever it is."""
    yield "| AUROC | what is usual | 20 -> 80 % confirmed in 40 | 20 -> 50 % confirmed in 160 |"
    yield "|---|---|---|---|"
    cases = ((40, LARGE), (160, SMALL))
    for auroc in AUROC:
        known = [best(auroc, count, usual=USUAL, then=then, false=0.02) for count, then in cases]
        yield f"| {auroc} | is known | {known[0]:.0%} | {known[1]:.0%} |"
        for before in BEFORE:
            large, half = (
                best_beside(auroc, sessions, before, then=then, false=0.02)
                for sessions, then in cases
            )
            yield f"| {auroc} | {before} sessions | {large:.0%} | {half:.0%} |"


# --- a month ---------------------------------------------------------------------------------------------------------


class Month(NamedTuple):
    mean: float  # of the judged gauge, as it stands at the end of each hour
    everything: float  # the same with every session judged
    asked: Counter[int]  # sessions beyond the sample, by day


def month(seed: int, *, sample: float = 0.05, a_day: int = 960) -> Month:
    """Four fifths fail on every third day from noon to six, and the drop stands from two on."""
    rng = np.random.default_rng(seed)
    times = np.arange(30 * a_day) * DAY / a_day
    hours = times % DAY / 3600
    drops = (times // DAY % 3 == 2) & (hours >= 12) & (hours < 18)
    failed = rng.random(times.shape) < np.where(drops, 0.8, USUAL)
    scores = (graded(0.69)(rng, failed) / 100).tolist()
    bases = (rng.random(times.shape) < sample).tolist()
    stands = (drops & (hours >= 14)).tolist()
    settings = JudgeMore(new_version=None, drop=40)
    asking = SecondOpinions(settings, "task_completion", settle=300.0, partitions=1)
    some, every = (Window(sessions=1_000, max_age=DAY) for _ in range(2))
    left, asked = 0, Counter[int]()
    means: list[float] = []
    alls: list[float] = []
    for at, now in enumerate(times.tolist()):
        score, is_base = scores[at], bases[at]
        every.offer(_entry(at, now, score, 1.0))
        if is_base or left:
            some.offer(_entry(at, now, score, 1.0 if left else 1 / sample))
            if not is_base:
                left -= 1
                asked[int(now // DAY)] += 1
            asking.take(AGENT, _seen(at, now), _header(at, score, is_base), is_new=True)
        since = now - 7200 if stands[at] else None
        alarm = NearAlarm("work_baseline", float(stands[at]), at, since)
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


def _seen(at: int, now: float) -> Incoming:
    return Incoming(SubjectHeader("trace", *AGENT, f"s{at}", "session.id", rfc3339(now)), now)


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
    errors = [each.mean - each.everything for each in found]
    sizes = [abs(each) for each in errors]
    off = f"off by {fmean(sizes):.4f}, at most {max(sizes):.4f}, on average {fmean(errors):+.4f}"
    yield f"{count} months, a drop on every third day: mean of the gauge {off}"
    yield f"sessions beyond the sample on a day with a drop: {fmean(asked):.0f}, at most {max(asked)}"


# --- labels ----------------------------------------------------------------------------------------------------------


Labels = Sequence[dict[str, Any]]


def labelled(labels: Labels) -> Iterator[str]:
    """Of each published judge: how well it sorts the sessions, its cost, and what it says of a benign shift."""
    judged = [each for each in labels if "llm_judge" in each]
    for name in sorted({name for each in judged for name in each["llm_judge"]}):
        said = [each | each["llm_judge"][name] for each in judged if name in each["llm_judge"]]
        good, bad = (fmean(e["passed"] for e in said if e["success"] is of) for of in (True, False))
        usd = fmean(each["cost_usd"] for each in said)
        yield (
            f"{name}: AUROC {(1 + good - bad) / 2:.2f}, {usd:.4f} USD a session;"
            f" a drop of 40 to 160 sessions {40 * usd:.2f} to {160 * usd:.2f}, a release of 80 {80 * usd:.2f}"
        )
        for moves, who, then in (
            (False, "20 -> 80 % failing", LARGE),
            (False, "20 -> 50 % failing", SMALL),
            (False, "benign, what moves no verdict", USUAL),
            (True, "benign, another mix of customers", USUAL),
        ):
            found = shifted(said, then, moves=moves)
            all_of = ", ".join(
                f"{share(found, each):.1%}" for each in ("confirmed", "not_confirmed")
            )
            yield f"    {who}: confirmed in 40 {share(found, 'confirmed', 40):.1%}, in 160, not {all_of}"
        yield f"    another mix of customers is to its verdicts what 20 -> {alike(said):.0%} failing is"


def shifted(said: Labels, then: float, *, moves: bool) -> list[Opinion]:
    """A change since which a share `then` of the sessions fails, with the verdicts of the labels.

    `moves`: from 15 to 85 % of the customers are hard to talk to; else verdicts depend on success alone.
    """
    rng = seeded(f"shifted {then} {moves}")
    cells = by_cell(said, moves=moves)

    def scores(count: int, failing: float, hard: float) -> Scores:
        succeeds, is_hard = (
            rng.random((STREAMS, count)) < share for share in (1 - failing, moves * hard)
        )
        found = np.zeros((STREAMS, count), int)
        for (of, which), verdicts in cells.items():
            here = (succeeds == of) & (is_hard == which)
            found[here] = rng.choice(np.multiply(verdicts, 100).astype(int), here.sum())
        return found

    return opinions_of(scores(BEFORE[-1], USUAL, HARD[0]), scores(LOOKS[-1], then, HARD[1]))


HARD = (0.15, 0.85)
"""Shares of customers that are hard to talk to, before another mix and in it."""


def by_cell(said: Labels, *, moves: bool) -> dict[tuple[bool, bool], list[float]]:
    """Verdicts by whether the session succeeded, and, if that `moves` them, by whether its customer was hard."""
    cells: dict[tuple[bool, bool], list[float]] = defaultdict(list)
    for each in said:
        is_hard = moves and "PERSONA:Hard" in each["task_id"]
        cells[each["success"], is_hard].append(float(each["passed"]))
    return cells


def alike(said: Labels) -> float:
    """The share of failures by which the judge passes as few sessions, of the usual customers, as of the other mix."""
    means = {cell: fmean(verdicts) for cell, verdicts in by_cell(said, moves=True).items()}

    def passed(hard: float, failing: float) -> float:
        good, bad = ((1 - hard) * means[of, False] + hard * means[of, True] for of in (True, False))
        return good - failing * (good - bad)

    good, bad = passed(HARD[0], 0.0), passed(HARD[0], 1.0)
    return (good - passed(HARD[1], USUAL)) / (good - bad)


def tables() -> Iterator[str]:
    if "--labels" in sys.argv:
        text = Path(sys.argv[sys.argv.index("--labels") + 1]).read_text(encoding="utf-8")
        yield from labelled([*json.loads(text).values()])
    yield from table()
    yield from bounds()
    yield from months()


if __name__ == "__main__":
    sys.stdout.writelines(f"{each}\n" for each in tables())
