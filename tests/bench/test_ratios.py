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


def ratio(stage: Stage, rounds: int) -> float:
    (found,) = interleaved((stage,), rounds)
    print(f"{stage.label} / transport: {found.ratio:.2f}")
    return found.ratio
