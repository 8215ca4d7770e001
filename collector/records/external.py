"""The score of an external evaluator as an outcome: what its value and label are worth here. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from collector.config.tree import Config
from collector.records.feedback import Feedback, plain_label
from collector.records.sent_feedback import EvaluationOrigin, external_name, slug
from collector.records.signal import Signal, redacted, signal_id
from collector.records.subject import Subject, signal_of
from evaluators.model import JSON, Failure, Outcome

Verdict = Literal["pass", "fail"]
LONGEST_EXPLANATION = 1_000  # characters, as the sinks that write scores into tools have them
UNVERSIONED = "unknown"  # of an evaluator that does not say its version
_GOOD = (
    "accepted accurate correct factual faithful good grounded ok pass passed positive relevant safe success supported"
    " true yes"
)
_BAD = (
    "bad fail failed failure false hallucinated inaccurate incorrect irrelevant negative no rejected toxic unfaithful"
    " ungrounded unrelated unsafe unsupported wrong"
)
_SAID = dict.fromkeys(_GOOD.split(), True) | dict.fromkeys(_BAD.split(), False)
_LABELS: Mapping[str, Verdict] = {
    no + word: "fail" if bool(no) == is_good else "pass"
    for word, is_good in _SAID.items()
    for no in ("", "not_", "non_")
}
_ids = msgspec.json.Encoder()


def external_objectives(config: Config, taken: AbstractSet[str]) -> dict[str, float]:
    """`evaluations.objectives` by the names that signals have; `taken`: as `EvaluationRules.of` takes it."""
    ours = taken | config.judges.keys()
    return {external_name(n, ours): each for n, each in config.evaluations.objectives.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRules:
    """How scores of others are read: `evaluations` of the configuration, by `slug` of their names."""

    taken: AbstractSet[str] = frozenset()  # names of our own evaluators
    scales: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    labels: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])
    lower_is_better: frozenset[str] = frozenset()
    max_age: float = 7 * 86_400.0  # seconds after its session that a score may come
    content: bool = True  # whether texts are kept

    @classmethod
    def of(cls, config: Config, taken: AbstractSet[str]) -> EvaluationRules:
        """`taken`: the names of all evaluators here; those of `judges` are too."""
        said = config.evaluations
        return cls(
            taken=taken | config.judges.keys(),
            scales={slug(name): (each.min, each.max) for name, each in said.scales.items()},
            labels={plain_label(label): verdict for label, verdict in said.labels.items()},
            thresholds={slug(name): each for name, each in said.thresholds.items()},
            lower_is_better=frozenset(map(slug, said.lower_is_better)),
            max_age=said.max_age,
            content=config.redaction.content == "keep",
        )

    def evaluator(self, name: str) -> str:
        return external_name(name, self.taken)

    def signal(self, said: Feedback, subject: Subject) -> Signal:
        """The signal of a score about this subject; the same score is the same signal."""
        outcome = self.outcome(said)
        ident = (subject.trace_id if subject.scope == "trace" else None) or subject.session_id
        found = signal_of(
            subject,
            outcome,
            signal_id(
                scope=subject.scope,
                service=subject.service,
                subject=ident,
                outcome=outcome,
                input_digest=hashlib.sha256(_ids.encode(said)).hexdigest(),
            ),
        )
        return found if self.content else redacted(found)

    def outcome(self, said: Feedback) -> Outcome:
        """A value or an error, never both: what is outside of its scale is not cut to it."""
        origin = said.evaluation or EvaluationOrigin()
        key = slug(said.name)
        score, error = self._score(said, key, origin)
        threshold = self.thresholds.get(key)
        metadata: dict[str, JSON] = {"name": said.name}
        found: dict[str, JSON] = {"value": said.value, "label": said.label, "source": origin.source}
        metadata |= {name: each for name, each in found.items() if each is not None}
        if score is None:
            success = None
        elif threshold is not None:
            success = score >= threshold
        else:
            verdict = self.verdict(said.label)
            success = origin.passed if verdict is None else verdict == "pass"
        return Outcome(
            evaluator=self.evaluator(said.name),
            version=origin.version or UNVERSIONED,
            method="external",
            state="failed" if score is None else "scored",
            score=score,
            threshold=threshold,
            success=success,
            explanation=said.comment and said.comment[:LONGEST_EXPLANATION],
            metadata=metadata,
            error=error,
        )

    def verdict(self, label: str | None) -> Verdict | None:
        word = None if label is None else plain_label(label)
        return None if word is None else self.labels.get(word) or _LABELS.get(word)

    def _score(
        self, said: Feedback, key: str, origin: EvaluationOrigin
    ) -> tuple[float | None, Failure | None]:
        if origin.error is not None:
            message = "the evaluator failed; its own records say why"
            return None, Failure(type=origin.error, message=message)
        if said.value is None:
            verdict = self.verdict(said.label)
            if verdict is not None:
                return float(verdict == "pass"), None
            if origin.passed is None:
                line = f"evaluations: {{labels: {{{said.label or '...'}: pass}}}}"
                message = f"there is no value, and the label says neither pass nor fail; set {line}"
                return None, Failure(type="unknown_label", message=message)
            return float(origin.passed), None
        low, high = said.scale or self.scales.get(key) or (0.0, 1.0)
        if not low <= said.value <= high:
            wider = f"min: {min(low, said.value):g}, max: {max(high, said.value):g}"
            line = f"evaluations: {{scales: {{{key}: {{{wider}}}}}}}"
            message = (
                f"{said.value:g} is outside of {low:g} to {high:g}; set its scale, such as {line}"
            )
            return None, Failure(type="out_of_scale", message=message)
        score = (said.value - low) / (high - low)
        return (1.0 - score if key in self.lower_is_better else score), None
