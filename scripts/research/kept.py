"""Whether `forward.keep` keeps what it promises: every trace of every session that failed, a share of the others.

    python -m scripts.research.kept ../shared/labelled/*.otlp.gz

For each recording: traces of failed sessions and how many of them are kept, the share of the others, and how far the
count of all traces that is estimated from what was kept is from the truth. One drawing of trace ids says little of
that: of 2,000 traces 5 % are 100, give or take 10, and so is the estimate. So the same traces are decided DRAWINGS
times, with other ids, and their mean is given with its standard error.
"""

import asyncio
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import msgspec
from msgspec.structs import replace

from collector.config.forward import Keep
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.forward.keeping import Keeping
from collector.forward.recorded import KeptOfRecordings
from collector.otlp.trace_state import BITS, NEVER
from collector.records.keeping import Decision
from collector.service.evaluation import ClosedSession, evaluate_recordings

SHARE = 0.05
DRAWINGS = 100


async def measured(files: Sequence[Path], *, slow: float | None = None) -> str:
    """The figures of these recordings together, as a line. `slow`: see `Keep`."""
    config, rules = Config(), Keep(share=SHARE, slow=slow, new_versions=0)
    kept = KeptOfRecordings(rules)

    def closed(session: ClosedSession) -> None:
        kept.add(map(msgspec.json.decode, session.signals), session.traces)

    await evaluate_recordings(config, plan_from(config), files, lambda _: None, closed)
    decisions = kept.decisions()
    failing = [each for each in decisions if each.trace.failed]
    others = [each for each in decisions if not each.trace.failed]
    sent = [each for each in others if each.is_kept]
    estimate = estimated(decisions)
    drawn = [estimated(drawing(rules, decisions, seed)) for seed in range(DRAWINGS)]
    away = [each / max(1, len(decisions)) - 1 for each in drawn]
    return (
        f"{len(decisions)} traces; of {len(failing)} that failed {sum(each.is_kept for each in failing)} are kept; "
        f"of {len(others)} others {len(sent) / max(1, len(others)):.2%}; "
        f"estimate of all {estimate:.0f} ({estimate / max(1, len(decisions)) - 1:+.1%}), "
        f"over {DRAWINGS} drawings {mean(away):+.1%} +- {stdev(away) / DRAWINGS**0.5:.1%}"
    )


def estimated(decisions: Sequence[Decision]) -> float:
    """How many traces there were, by what was kept."""
    return sum(NEVER / (NEVER - each.threshold) for each in decisions if each.is_kept)


def drawing(rules: Keep, decisions: Sequence[Decision], seed: int) -> list[Decision]:
    """The same traces in the same order, with other ids."""
    keeping = Keeping(rules, late=0.0)
    found: list[Decision] = []
    for at, each in enumerate(decisions):
        drawn = hashlib.sha256(each.trace.trace_id + seed.to_bytes(4)).digest()[: BITS // 8]
        keeping.closed(replace(each.trace, randomness=int.from_bytes(drawn)), float(at))
        found += keeping.due(float(at))
    return [*found, *keeping.due(float("inf"))]


def main() -> None:
    files = [Path(each) for each in sys.argv[1:]]
    for each in files:
        sys.stdout.write(f"{each.name}: {asyncio.run(measured([each]))}\n")
    sys.stdout.write(f"all: {asyncio.run(measured(files))}\n")


if __name__ == "__main__":
    main()
