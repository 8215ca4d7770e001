"""Every metric family that a process exports about itself: one class per room, made once when the process starts.

A class is named in `FAMILIES` so that all its families are in `/metrics` before the first event, and in the test
that compares them with docs/operate.md.
"""

from collections.abc import Callable

from collector.api.families import ApiFamilies
from collector.assembly.families import AssemblyFamilies
from collector.base.families import RuntimeFamilies
from collector.base.telemetry import Telemetry
from collector.export.metric_push import MetricFamilies
from collector.forward.families import ForwardFamilies
from collector.judging.families import JudgingFamilies
from collector.log.families import LogFamilies
from collector.notices.families import NoticeFamilies
from collector.reading.families import PoolFamilies
from collector.receiver.families import ReceiverFamilies
from collector.scoring.families import ScoringFamilies
from collector.sinks.families import SinkFamilies
from collector.watch.families import FaultFamilies, RankingFamilies

FAMILIES: tuple[Callable[[Telemetry], object], ...] = (
    ApiFamilies,
    AssemblyFamilies,
    FaultFamilies,
    ForwardFamilies,
    JudgingFamilies,
    LogFamilies,
    MetricFamilies,
    NoticeFamilies,
    PoolFamilies,
    RankingFamilies,
    ReceiverFamilies,
    RuntimeFamilies,
    ScoringFamilies,
    SinkFamilies,
)


def declare_families(telemetry: Telemetry) -> None:
    for families in FAMILIES:
        families(telemetry)
