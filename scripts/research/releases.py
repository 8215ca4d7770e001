"""False fails of releases in which nothing changed, by both rules of docs/release-verdicts.md together.

`python -m scripts.research.releases` prints the table (ten minutes). A release is asked about after each of its 160
sessions, beside 200 or 40 of the version before. Sessions use ten tools, which fail as often as before, independently
of each other or in clumps; a session with a failing tool scores as a real one that failed, another as one that did not.
"""

import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from collector.records.comparison import release_faults
from collector.records.what_changed import ToolCounts
from collector.records.windows import VersionUses
from evaluators.formulas.fault_watch import Cause
from evaluators.formulas.release_verdict import release_verdict
from scripts.research.faults import Chance, clumped, independent

RUNS = 400
SESSIONS = 160  # of the release
BEFORE = (200, 40)
TOOLS = 10
QUANTILES = Path(__file__).parents[2] / "tests" / "data" / "score_quantiles.json"
ROWS: Mapping[str, Chance] = {
    **{f"{100 * rate:g} %, independent": independent(rate) for rate in (0.02, 0.05, 0.2)},
    **{
        f"{100 * rate:g} %, in clumps of mean {length}": clumped(rate, length)
        for rate, length in ((0.02, 2), (0.05, 2))
    },
}


def fails(
    chance: Chance,
    scores: Mapping[str, Sequence[float]],
    before: int,
    rng: random.Random,
) -> tuple[bool, bool]:
    """Whether the ranks, and whether the counts of faults, ever fail a release in which nothing changed."""
    old, new = ([VersionUses() for _ in range(TOOLS)] for _ in range(2))
    failed = np.zeros(TOOLS, bool)
    sides: list[list[float]] = [[], []]
    by_fault = False
    for number in range(before + SESSIONS):
        is_new = number >= before
        failed = np.array([rng.random() for _ in range(TOOLS)]) < chance(failed, number)
        for count, bad in zip(new if is_new else old, failed.tolist(), strict=True):
            count.count(bad, None)
        sides[is_new].append(rng.choice(scores["failed" if failed.any() else "good"]))
        if is_new and failed.any() and not by_fault:
            counts: dict[Cause, ToolCounts] = {
                ("tool_failed", str(at)): ToolCounts(a.counted, b.counted)
                for at, (a, b) in enumerate(zip(new, old, strict=True))
                if failed[at]  # without a failure the evidence does not grow
            }
            by_fault = bool(release_faults(counts, ()))
    return release_verdict(sides[1], sides[0]).verdict == "fail", by_fault


def rows() -> Iterator[str]:
    kinds = json.loads(QUANTILES.read_text())
    yield "| of each of ten tools' uses fail | sessions before | failed by ranks | by a fault | in all |"
    yield "|---|---|---|---|---|"
    for name, chance in ROWS.items():
        for before in BEFORE:
            found = [
                fails(chance, scores, before, random.Random(f"{kind} {run}"))  # noqa: S311
                for kind, scores in kinds.items()
                for run in range(RUNS)
            ]
            shares = (
                sum(each[0] for each in found),
                sum(each[1] for each in found),
                sum(map(any, found)),
            )
            cells = " | ".join(f"{count / len(found):.1%}" for count in shares)
            yield f"| {name} | {before} | {cells} |"


if __name__ == "__main__":
    for _row in rows():
        sys.stdout.write(f"{_row}\n")
        sys.stdout.flush()
