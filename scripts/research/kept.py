"""Whether `forward.keep` keeps what it promises: every trace of every session that failed, a share of the others.

    python -m scripts.research.kept ../shared/labelled/*.otlp.gz

For each recording: traces of failed sessions and how many of them are kept, the share of the others, and how far the
count of all traces that is estimated from what was kept is from the truth.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from collector.config.forward import Keep
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.forward.recorded import KeptOfRecordings
from collector.otlp.trace_state import NEVER
from collector.service.evaluation import ClosedSession, evaluate_recordings

SHARE = 0.05


async def measured(files: Sequence[Path], *, slow: float | None = None) -> str:
    """The figures of these recordings together, as a line. `slow`: see `Keep`."""
    config = Config()
    kept = KeptOfRecordings(Keep(share=SHARE, slow=slow, new_versions=0))

    def closed(session: ClosedSession) -> None:
        kept.add(map(msgspec.json.decode, session.signals), session.traces)

    await evaluate_recordings(config, plan_from(config), files, lambda _: None, closed)
    decisions = kept.decisions()
    failing = [each for each in decisions if each.trace.failed]
    others = [each for each in decisions if not each.trace.failed]
    sent = [each for each in others if each.is_kept]
    estimate = sum(NEVER / (NEVER - each.threshold) for each in decisions if each.is_kept)
    return (
        f"{len(decisions)} traces; of {len(failing)} that failed {sum(each.is_kept for each in failing)} are kept; "
        f"of {len(others)} others {len(sent) / max(1, len(others)):.2%}; "
        f"estimate of all {estimate:.0f} ({estimate / max(1, len(decisions)) - 1:+.1%})"
    )


def main() -> None:
    files = [Path(each) for each in sys.argv[1:]]
    for each in files:
        sys.stdout.write(f"{each.name}: {asyncio.run(measured([each]))}\n")
    sys.stdout.write(f"all: {asyncio.run(measured(files))}\n")


if __name__ == "__main__":
    main()
