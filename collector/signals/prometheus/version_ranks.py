"""The gauges of release verdicts: `spanwise_version_rank_ratio`, for what reads PromQL (Keptn, Harness, Kayenta)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.records.comparison import Version, before, newest, version_of
from collector.records.signal import HEADLINES
from collector.records.standing import AgentLabels
from collector.records.windows import WindowEntry
from collector.signals.prometheus.targets import Targets
from evaluators.formulas.release_verdict import Rank, release_verdict

_LABELS = ("service", "agent", "evaluator", "agent_version", "baseline")


def rank_gauges() -> Mapping[str, GaugeMetricFamily]:
    """The gauges without samples, by name."""
    texts = {
        "ratio": "Chance that a session of the newest version scores better than one of the version before; .5 is no"
        " change. At the last of 20, 40, 80 and 160 sessions.",
        "lower_bound_ratio": "Lower bound of that chance.",
        "upper_bound_ratio": "Upper bound of that chance.",
    }
    return {
        name: GaugeMetricFamily(f"spanwise_version_rank_{name}", text, labels=_LABELS)
        for name, text in texts.items()
    }


class RankGauges(Collector):
    """One sample for each agent and headline with two versions. Registered once; reads the live state."""

    def __init__(
        self, targets: Targets, now: Callable[[], float], *, caught_up: Callable[[], bool]
    ) -> None:
        self._targets = targets
        self._now = now
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return rank_gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Every family at this moment; none until the windows from before a restart have been read back."""
        if not self._caught_up():
            return
        gauges = rank_gauges()
        for agent, evaluator, versions in self._compared():
            candidate = newest(versions)
            baseline = None if candidate is None else before(candidate, versions)
            if candidate is None or baseline is None:
                continue
            mine, other = (version_of(name, versions[name]) for name in (candidate, baseline))
            rank = _rank(mine, other)
            if rank is not None:
                labels = (*agent, evaluator, candidate, baseline)
                for name, value in zip(gauges, rank, strict=True):
                    gauges[name].add_metric(labels, value)
        yield from gauges.values()

    def _compared(
        self,
    ) -> Iterator[tuple[AgentLabels, str, Mapping[str, Sequence[WindowEntry]]]]:
        now = self._now()
        for target in self._targets:
            service, agent, evaluator, _ = target.labels
            if evaluator in HEADLINES:
                found = self._targets.by_version((service, agent), evaluator, now)
                yield (
                    (service, agent),
                    evaluator,
                    {name: each for name, each in found.items() if each},
                )


def _rank(candidate: Version, baseline: Version) -> Rank | None:
    scores = candidate.scores, baseline.scores
    return release_verdict(*scores, left_out=candidate.left_out).rank
