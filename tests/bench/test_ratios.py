"""The ratios of the hot path, held in the normal suite with fewer rounds than `make bench` takes.

Each limit is the mark with room for a machine that others share, or, where the docstring says that a mark is not
reached yet, the figure that was reached and 30 %.
"""

from __future__ import annotations

import pytest

from tests.bench.latency import ack_ratio
from tests.bench.memory import heavy_imports, rest_megabytes
from tests.bench.ratios import DURABLE, EVERYTHING, Stage, interleaved

pytestmark = pytest.mark.bench


ROUNDS = 3


def holds(stage: Stage) -> bool:
    """Whether one of at most three rounds is within the limit: what others do on the machine only adds."""
    for _ in range(ROUNDS):
        (found,) = interleaved((stage,), rounds=1)
        print(f"{stage.label} / transport: {found.ratio:.2f}, held at {HELD[stage.label]}")
        if found.ratio <= HELD[stage.label]:
            return True
    return False


HELD = {
    "durable, batch 64": 3.9,
    "durable, batch 512": 4.7,
    "durable, batch 1": 2.3,
    "durable, batch 64, gzip": 2.1,
    "everything, no embedder": 33.0,
    "everything, wordllama": 38.0,
}


@pytest.mark.parametrize("stage", DURABLE, ids=lambda each: each.label)
def test_durable_ingest(stage: Stage) -> None:
    """Marks: 3.0 at batch 64, 4.0 at 512, 1.5 at 1 and with gzip.

    Reached: 3.0, 3.0 to 3.6, 1.75, 1.6; the limits are these and 30 %, as one round on a shared machine says no more.
    """
    assert holds(stage)


@pytest.mark.parametrize("stage", EVERYTHING, ids=lambda each: each.label)
def test_everything_on(stage: Stage) -> None:
    """Marks: 12 without an embedder, 20 with wordllama.

    Not reached: 25 and 29, of which reading and scoring in the workers are 9; the limits are these and 30 %.
    """
    assert holds(stage)


def test_acknowledgements_do_not_wait_for_evaluation() -> None:
    """Mark: 3, as the median of five; two of them vary more, hence the room."""
    assert ack_ratio(repeats=2, rate=3000) <= 4.5


def test_the_main_process_is_small_at_rest() -> None:
    assert rest_megabytes() <= 64


def test_the_main_process_imports_no_heavy_library() -> None:
    assert heavy_imports() == []
