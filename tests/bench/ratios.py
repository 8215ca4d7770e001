"""The rows of the table: what is measured, against what, and the mark (specs of the hot path).

Every ratio is of CPU seconds per million spans inside one round; a round measures its transport anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from tests.bench.measure import Run, load_file, run_service, run_transport

RECEIVE = "roles=[receive]"
NO_EMBEDDER = "embedder.kind=none"
# The transport takes 0.2 s of CPU for what the whole service takes 8 s for, and the kernel counts in steps of 10 ms.
TRANSPORT_PASSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How requests are sent."""

    batch: int
    passes: int
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One service under one load. `mark` is the ratio to hold; None: printed for its share only."""

    label: str
    load: Load
    settings: tuple[str, ...]
    mark: float | None = None


B64 = Load(batch=64, passes=4)
MANY64 = Load(batch=64, passes=8)
B512 = Load(batch=512, passes=7)
B1 = Load(batch=1, passes=1)
GZIP = Load(batch=64, passes=3, options=("--gzip",))

DURABLE = (
    Stage(label="durable, batch 64", load=MANY64, settings=(RECEIVE,), mark=3.0),
    Stage(label="durable, batch 512", load=B512, settings=(RECEIVE,), mark=4.0),
    Stage(label="durable, batch 1", load=B1, settings=(RECEIVE,), mark=1.5),
    Stage(label="durable, batch 64, gzip", load=GZIP, settings=(RECEIVE,), mark=1.5),
)
SHARES = (
    Stage(label="receive, assemble", load=B64, settings=("roles=[receive,assemble]",)),
    Stage(
        label="receive, assemble, score",
        load=B64,
        settings=("roles=[receive,assemble,score]", NO_EMBEDDER),
    ),
)
EVERYTHING = (
    Stage(label="everything, no embedder", load=B64, settings=(NO_EMBEDDER,), mark=12.0),
    Stage(label="everything, wordllama", load=B64, settings=(), mark=20.0),
)


@dataclass(slots=True)
class Measured:
    """The ratios of one stage, one for each round."""

    stage: Stage
    ratios: list[float] = field(default_factory=list[float])
    costs: list[float] = field(default_factory=list[float])

    @property
    def ratio(self) -> float:
        """The median of the rounds."""
        return median(self.ratios)

    @property
    def cost(self) -> float:
        """CPU seconds per million spans, the median of the rounds."""
        return median(self.costs)


def interleaved(stages: tuple[Stage, ...], rounds: int) -> Iterator[Measured]:
    """Measure every stage in every round, each round with its own transport; yields one result per stage."""
    measured = {stage.label: Measured(stage) for stage in stages}
    for _ in range(rounds):
        transports: dict[Load, Run] = {}
        for stage in stages:
            load = stage.load
            file = load_file(load.batch)
            if load not in transports:
                passes = load.passes * TRANSPORT_PASSES
                transports[load] = run_transport(file, *load.options, passes=passes)
            run = run_service(
                stage.label, file, *stage.settings, options=load.options, passes=load.passes
            )
            measured[stage.label].ratios.append(run.per_million / transports[load].per_million)
            measured[stage.label].costs.append(run.per_million)
    yield from measured.values()
