"""What the signals of names that were admitted need: looked up once, forgotten when names are admitted again."""

from dataclasses import dataclass

from prometheus_client import Counter

from collector.base.telemetry import OTHER
from collector.export.families import AgentFamilies
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.watch.windows.targets import Admitted, TargetPlace, Targets

MOST_KNOWN = 4_096  # (Service, agent, scope) whose places are at hand


@dataclass
class KnownNames:
    """The names of signals that have label values of their own. Bounded by MOST_KNOWN."""

    targets: Targets
    families: AgentFamilies
    overflow: Counter
    """Counts names that get no label value of their own, by label."""

    def __post_init__(self) -> None:
        self._known: dict[tuple[str, str, str], dict[str, TargetPlace]] = {}
        """By service, agent and scope, then by evaluator."""
        self._generation = -1  # that of the targets for which they are known

    def of(self, subject: SubjectHeader) -> dict[str, TargetPlace]:
        if self._generation != self.targets.generation or len(self._known) > MOST_KNOWN:
            self._known.clear()
            self._generation = self.targets.generation
        return self._known.setdefault((subject.service, subject.agent, subject.scope), {})

    def find(
        self, subject: SubjectHeader, header: SignalHeader, time: float, *, is_new: bool
    ) -> TargetPlace:
        """What a signal of these names needs; kept where they have label values of their own.

        `is_new`: it was not counted before a restart, so that names without a label value are counted.
        """
        scope = subject.scope
        evaluator, is_external = header.evaluator, header.method == "external"
        names = (subject.service, subject.agent, evaluator, scope)
        admitted = self.targets.admit(*names, time, is_external=is_external)
        self._forget_evicted(admitted, is_new=is_new)
        place = self.targets.place(admitted.labels, subject.service, evaluator)
        if OTHER not in admitted.labels:
            self.of(subject)[evaluator] = place
        return place

    def _forget_evicted(self, admitted: Admitted, *, is_new: bool) -> None:
        if admitted.evicted_evaluator is not None:
            self.families.forget_evaluator(admitted.evicted_evaluator)
        if is_new:
            for label in admitted.overflows:
                self.overflow.labels(label).inc()
