"""Tool calls against expected ones (Fair Forge tool correctness).

This differs from the reference where that is arbitrary: the i-th expected call of a tool is compared with the i-th
made one, true is not 1, weights are normalised, and nothing expected with nothing done is perfect.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from evaluators.matching.json_values import list_of, object_of
from evaluators.model import JSON

PARTS = ("selection", "parameters", "sequence", "utilization")
DEFAULT_WEIGHTS: Mapping[str, float] = dict.fromkeys(PARTS, 0.25)
_TOLERANCE = 1e-9
"""Four quarters may add up to a little less than 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    name: str | None
    parameters: Mapping[str, JSON] | None
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatch:
    tool_selection_correct: float
    parameter_accuracy: float
    sequence_correct: float
    result_utilization: float
    overall_correctness: float
    is_correct: bool

    @property
    def reasoning(self) -> str:
        return (
            f"selection {self.tool_selection_correct:.2f}, parameters {self.parameter_accuracy:.2f}, "
            f"sequence {self.sequence_correct:.2f}, utilization {self.result_utilization:.2f}"
        )


def match_tools(
    used: Sequence[Use],
    expected: Sequence[Use],
    *,
    order_matters: bool = True,
    answer_uses_tools: bool,
    weights: Mapping[str, float] = DEFAULT_WEIGHTS,
    threshold: float = 1.0,
) -> ToolMatch:
    """Compare. Raises ValueError: the weights do not sum to a positive number, or one of them has no known name."""
    total = sum(weights.values())
    if total <= 0 or min(weights.values()) < 0 or set(weights) - set(PARTS):
        raise ValueError(f"tool_weights: needs non-negative weights of {', '.join(PARTS)}")
    if not used and not expected:
        parts = dict.fromkeys(PARTS, 1.0)
    else:
        parts = {
            "selection": _selection({use.name for use in used}, {use.name for use in expected}),
            "parameters": _mean(used, expected, _equal_parameters),
            "sequence": 1.0
            if not order_matters
            else _mean(used, expected, lambda want, have: float(want.step == (have and have.step))),
            "utilization": float(answer_uses_tools),
        }
    overall = sum(weights.get(part, 0.0) * parts[part] for part in PARTS) / total
    return ToolMatch(
        tool_selection_correct=parts["selection"],
        parameter_accuracy=parts["parameters"],
        sequence_correct=parts["sequence"],
        result_utilization=parts["utilization"],
        overall_correctness=overall,
        is_correct=overall >= threshold - _TOLERANCE,
    )


def _selection(used: set[str | None], expected: set[str | None]) -> float:
    if used == expected:
        return 1.0
    if used < expected:
        return len(used) / len(expected)
    if expected < used:
        return len(expected) / len(used)
    return len(used & expected) / len(used | expected)


def _pairs(used: Sequence[Use], expected: Sequence[Use]) -> list[list[tuple[Use, Use | None]]]:
    """Per expected name: its expected calls, the i-th beside the i-th made call of that name, if there is one."""
    made = _by_name(used)
    return [
        [
            (want, have)
            for want, have in zip_longest(calls, made.get(name, [])[: len(calls)])
            if want is not None
        ]
        for name, calls in _by_name(expected).items()
    ]


def _by_name(uses: Sequence[Use]) -> dict[str | None, list[Use]]:
    found: dict[str | None, list[Use]] = {}
    for use in uses:
        found.setdefault(use.name, []).append(use)
    return found


def _mean(
    used: Sequence[Use], expected: Sequence[Use], part: Callable[[Use, Use | None], float]
) -> float:
    """Over all expected calls; a tool that was never called counts once, however often it was expected."""
    scores: list[float] = []
    for calls in _pairs(used, expected):
        if all(have is None for _, have in calls):
            scores.append(0.0)
        else:
            scores += [part(want, have) for want, have in calls]
    return math.fsum(scores) / len(scores) if scores else 0.0


def _equal_parameters(want: Use, have: Use | None) -> float:
    if have is None:
        return 0.0
    if want.parameters is None:
        return 1.0
    mine, theirs = have.parameters or {}, want.parameters
    keys = {*mine, *theirs}
    equal = sum(_same(mine.get(key), theirs.get(key)) for key in keys)
    return equal / len(keys) if keys else 1.0


def _same(left: JSON, right: JSON) -> bool:
    """Equal as JSON: 1 is 1.0, true is not 1."""
    mine, theirs = object_of(left), object_of(right)
    if mine is not None and theirs is not None:
        return mine.keys() == theirs.keys() and all(_same(mine[k], theirs[k]) for k in mine)
    ours, others = list_of(left), list_of(right)
    if ours is not None and others is not None:
        return len(ours) == len(others) and all(map(_same, ours, others))
    return isinstance(left, bool) == isinstance(right, bool) and left == right
