"""The ratios of the hot path, held in the normal suite with fewer rounds than `make bench` takes.

Each limit is the figure that was reached and 35 %, as a machine that others share says no more; a row has held when
one of at most six rounds is within its limit. With every row at its first round it all takes about two minutes.
What others do on the machine lasts for a minute or two, and adds more to a large process than to the small transport:
three rounds of half a minute were once all within such a time.
"""

from pathlib import Path

import pytest

from tests.bench.ratios import DURABLE, EVERYTHING, OTHER_LOADS, Stage, interleaved
from tests.bench.rest import main_megabytes
from tests.bench.turns import measured

pytestmark = [pytest.mark.bench, pytest.mark.timeout(400)]
ROUNDS = 6
HELD = {
    "durable, batch 64": 4.9,
    "durable, batch 512": 5.2,
    "durable, batch 1": 2.8,
    "durable, batch 64, gzip": 2.1,
    "everything, no embedder": 34.0,
    "everything": 40.0,
}
"""CPU of all processes / the transport's. Reached, in this order: 3.3, 3.9, 2.0, 1.5, 25 and 30 beside other work, 20
with wordllama in a quiet minute. The marks are 3.0, 4.0, 1.5, 1.5, 12 and 20. Not reached: durable batches of 64 and
of 1, since requests are bounded before they are parsed, slots are taken before messages are read, and records have a
CRC (2.8, 3.1, 1.7 before, on that machine); everything, to which `runaway` and the comparison with an agent's own past
added a tenth.
"""
WRITTEN = {"everything": 4.0, "everything, batch 1": 12.0}
"""Bytes given to the disk / bytes that came. Marks: 3 at batch 64, 10 at batch 1.

Reached: 2.4 and 5.9; 2.7 and 8.1 beside a dozen busy processes, as less goes into one transaction then.
"""
STAGES = [s for s in (*DURABLE, *EVERYTHING, *OTHER_LOADS) if s.label in {*HELD, *WRITTEN}]


@pytest.mark.parametrize("stage", STAGES, ids=lambda each: each.label)
def test_a_stage_is_within_its_limits(stage: Stage) -> None:
    """In one of at most six rounds: what others do on the machine only adds."""
    for _ in range(ROUNDS):
        (found,) = interleaved((stage,), rounds=1)
        print(f"{stage.label}: {found.ratio:.2f} transports, {found.written:.2f} written a byte")
        assert found.written >= 1, "the checkout stands on no disk: nothing is counted"
        cpu, written = (limits.get(stage.label, float("inf")) for limits in (HELD, WRITTEN))
        if found.ratio <= cpu and found.written <= written:
            return
    pytest.fail(f"{stage.label} is above its limits")


def test_acknowledgements_do_not_wait_for_evaluation(tmp_path: Path) -> None:
    """What an acknowledgement waits for besides the disk, in CPU time, with evaluation / without: at most 3.

    Reached: 2.2 for turns of the event loop, 1.0 for transactions. `make bench` prints the mark's own figure, the
    p99 of acknowledgements: that is made of the disk's syncs, and so of what others do on the machine.
    """
    ratios: dict[str, float] = {}
    for number in range(ROUNDS):
        quiet = measured(tmp_path / f"quiet{number}", "roles=[receive]")
        busy = measured(tmp_path / f"busy{number}")
        ratios = {name: busy[name] / quiet[name] for name in quiet}
        print(ratios)
        if max(ratios.values()) <= 3:
            return
    pytest.fail(f"one thing keeps the others waiting: {ratios}")


def test_the_main_process_is_small_at_rest() -> None:
    assert main_megabytes() <= 64
