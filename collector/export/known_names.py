"""What the signals of names that were admitted need: looked up once, forgotten when names are admitted again."""

from dataclasses import dataclass

from prometheus_client import Counter

from collector.base.telemetry import OTHER
from collector.export.families import AgentFamilies
from collector.export.label_counts import LabelCounts
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.watch.windows.targets import Admitted, TargetPlace, Targets

MOST_KNOWN = 4_096  # (Service, agent, scope) whose places are at hand


@dataclass(slots=True)
class KnownLabels:
    place: TargetPlace
    counts: LabelCounts
    has_objective: bool
    """Of its label: its scores are in the histogram, however many agents there are."""


class KnownNames:
    """The names of signals that have label values of their own. Bounded by MOST_KNOWN."""

    def __init__(self, targets: Targets, families: AgentFamilies, overflow: Counter) -> None:
        """`overflow` counts names that get no label value of their own, by label."""
        self._targets = targets
        self._families = families
        self._overflow = overflow
        self._known: dict[tuple[str, str, str], dict[str, KnownLabels]] = {}
        """By service, agent and scope, then by evaluator."""
        self._generation = -1  # that of the targets for which they are known

    def of(self, subject: SubjectHeader) -> dict[str, KnownLabels]:
        if self._generation != self._targets.generation or len(self._known) > MOST_KNOWN:
            self._known.clear()
            self._generation = self._targets.generation
        names = (subject.service, subject.agent, subject.scope)
        known = self._known.get(names)
        if known is None:
            known = self._known[names] = {}
        return known

    def find(
        self, subject: SubjectHeader, header: SignalHeader, time: float, *, is_new: bool
    ) -> KnownLabels:
        """What a signal of these names needs; kept where they have label values of their own.

        `is_new`: it was not counted before a restart, so that names without a label value are counted.
        """
        scope = subject.scope
        evaluator, is_external = header.evaluator, header.method == "external"
        names = (subject.service, subject.agent, evaluator, scope)
        admitted = self._targets.admit(*names, time, is_external=is_external)
        self._forget_evicted(admitted, is_new=is_new)
        labels = admitted.labels
        found = KnownLabels(
            place=self._targets.place(labels, subject.service, evaluator),
            counts=self._families.counts(labels),
            has_objective=self._targets.objective(labels) is not None,
        )
        if OTHER not in labels:
            self.of(subject)[evaluator] = found
        return found

    def clear(self) -> None:
        """Forget all: what they were counted in has changed."""
        self._known.clear()

    def _forget_evicted(self, admitted: Admitted, *, is_new: bool) -> None:
        if admitted.evicted_evaluator is not None:
            self._families.forget_evaluator(admitted.evicted_evaluator)
        if is_new:
            for label in admitted.overflows:
                self._overflow.labels(label).inc()
