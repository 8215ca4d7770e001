"""The rows of the table: what is measured, against what, and the mark (specs of the hot path).

Every ratio is of CPU seconds per million spans inside one round; a round measures its transport again.
"""

from dataclasses import dataclass, field
from pathlib import Path
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
    matching: bool = True
    """Tools' spans carry the ids that models asked with."""

    @property
    def file(self) -> Path:
        """Its requests."""
        return load_file(self.batch, matching=self.matching)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One service under one load. The marks are the ratios to hold; None: printed for its share only."""

    label: str
    load: Load
    settings: tuple[str, ...]
    mark: float | None = None
    """Of all processes / the transport."""
    main: float | None = None
    """Of the main process / the transport."""
    written: float | None = None
    """Bytes given to the disk / bytes that came."""


B64 = Load(batch=64, passes=4)
MANY64 = Load(batch=64, passes=8)
DIFFER64 = Load(batch=64, passes=4, matching=False)
B512 = Load(batch=512, passes=7)
B1 = Load(batch=1, passes=1)
GZIP = Load(batch=64, passes=3, options=("--gzip",))

DURABLE = (
    Stage(label="durable, batch 64", load=MANY64, settings=(RECEIVE,), mark=2.4),
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
    Stage(label="everything, no embedder", load=B64, settings=(NO_EMBEDDER,), mark=10.0),
    Stage(label="everything", load=B64, settings=(), mark=13.0, main=7.0, written=3.0),
)
OTHER_LOADS = (
    Stage(label="everything, ids differ", load=DIFFER64, settings=()),
    Stage(label="everything, batch 1", load=B1, settings=(), written=10.0),
)


@dataclass(slots=True)
class Measured:
    """One stage: of each round the service's run, and the transport's CPU seconds per million spans. Their medians."""

    stage: Stage
    rounds: list[tuple[Run, float]] = field(default_factory=list[tuple[Run, float]])

    @property
    def ratio(self) -> float:
        """Of all processes / the transport."""
        return median(run.per_million / transport for run, transport in self.rounds)

    @property
    def main(self) -> float:
        """Of the main process / the transport."""
        return median(run.main_per_million / transport for run, transport in self.rounds)

    @property
    def written(self) -> float:
        """Bytes given to the disk / bytes that came."""
        return median(run.written_per_wire for run, _ in self.rounds)

    @property
    def cost(self) -> float:
        """CPU seconds per million spans."""
        return median(run.per_million for run, _ in self.rounds)


def interleaved(stages: tuple[Stage, ...], rounds: int) -> list[Measured]:
    """Measure every stage in every round, each round with its own transport."""
    measured = [Measured(stage) for stage in stages]
    for _ in range(rounds):
        transports: dict[Load, float] = {}
        for each in measured:
            load = each.stage.load
            if load not in transports:
                passes = load.passes * TRANSPORT_PASSES
                run = run_transport(load.file, *load.options, passes=passes)
                transports[load] = run.per_million
            settings = each.stage.settings
            run = run_service(load.file, *settings, options=load.options, passes=load.passes)
            each.rounds.append((run, transports[load]))
    return measured
