"""The signals that session formulas read of each turn, and exact sums over them (PandaProbe)."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from evaluators.model import JSON, Turn
from evaluators.resources import Running

SignalName = Literal["confidence", "loop_detection", "tool_correctness", "coherence"]


class SignalRisk(NamedTuple):
    name: str  # in the metadata
    weight: float  # unless the user sets another


SIGNALS: Mapping[str, SignalRisk] = {
    "confidence": SignalRisk("confidence_risk", 1.0),
    "loop_detection": SignalRisk("loop_risk", 1.0),
    "tool_correctness": SignalRisk("tool_risk", 0.8),
    "coherence": SignalRisk("coherence_risk", 1.0),
}
"""The evaluators that the documents' session formulas read, in the documents' order."""


def default_signals(uncalibrated: Collection[str]) -> tuple[str, ...]:
    """The signals, without evaluators whose scale is not calibrated: they would pin every session near 0."""
    return tuple(name for name in SIGNALS if name not in uncalibrated)


def merged(weights: Mapping[str, float]) -> dict[str, float]:
    """The default weights overlaid with a user's; unknown names are kept, as the documents show them, and not used."""
    return {**{name: risk.weight for name, risk in SIGNALS.items()}, **weights}


Inputs = Literal["calibrated", "raw"]
"""The risk of a score in session formulas: the evaluator's own calibrated risk, or 1 - score (PandaProbe)."""


def risks(turn: Turn, signals: tuple[str, ...], inputs: Inputs) -> dict[str, float]:
    """The risk of every signal present, by signal; a score that is not a finite number is not present."""
    calibrated: Mapping[str, float] = turn.risks if inputs == "calibrated" else {}
    found: dict[str, float] = {}
    for name in SIGNALS:
        if name in signals and name in turn.scores and math.isfinite(score := turn.scores[name]):
            found[name] = calibrated.get(name, 1.0 - score)
    return found


UNIT = 1 << 60  # steps in 1: floats of 2^-7 and above are exact in them


def exact(value: float) -> int:
    """In steps of 2^-60: sums of integers do not depend on their order."""
    return round(math.ldexp(value, 60))


class _SignalPart(NamedTuple):
    value: int | None
    present: int
    missing: tuple[str, ...]
    scored: bool


class SignalState(Running):
    """One number per turn made of its signals, and how many of them were expected and present."""

    def __init__(self, options: Mapping[str, JSON]) -> None:
        self.weights = merged(options["signal_weights"])
        self.signals: tuple[str, ...] = tuple(options["signals"] or default_signals({"coherence"}))
        self.inputs: Inputs = options["inputs"]
        self._parts: dict[str, _SignalPart] = {}
        self._present = self._scored = 0
        self._missing: Counter[str] = Counter()

    @abstractmethod
    def value(self, risk: Mapping[str, float]) -> float | None:
        """The turn's number; None when its signals do not suffice."""

    @abstractmethod
    def add(self, value: int) -> None:
        """Count a turn's number in."""

    @abstractmethod
    def remove(self, value: int) -> None:
        """Take a turn's number out."""

    def put(self, turn: Turn) -> None:
        self.drop(turn.trace_id)
        risk = risks(turn, self.signals, self.inputs)
        value = self.value(risk)
        why, assumed = turn.unscored_why, turn.assumed
        missing = [n for n in turn.unscored if n in self.signals and n not in risk]
        part = _SignalPart(
            None if value is None else exact(value),
            len(risk) if not assumed else len([name for name in risk if name not in assumed]),
            tuple([why.get(name, "unscored") for name in missing]),
            bool(turn.scores),
        )
        self._count(part, 1)
        self._parts[turn.trace_id] = part
        if part.value is not None:
            self.add(part.value)

    def drop(self, trace_id: str) -> None:
        part = self._parts.pop(trace_id, None)
        if part is None:
            return
        self._count(part, -1)
        if part.value is not None:
            self.remove(part.value)

    def _count(self, part: _SignalPart, sign: int) -> None:
        self._present += sign * part.present
        self._scored += sign * part.scored
        for why in part.missing:
            self._missing[why] += sign
            if not self._missing[why]:
                del self._missing[why]

    @property
    def coverage(self) -> tuple[int, int]:
        """(expected, present) signals over all turns; those with an assumed score do not count."""
        return self._present + self._missing.total(), self._present

    @property
    def missing(self) -> Mapping[str, int]:
        """How many signals are expected and not present, by reason (`Turn.unscored_why`)."""
        return self._missing

    @property
    def turns(self) -> int:
        return len(self._parts)

    @property
    def is_empty(self) -> bool:
        return self._scored == 0
