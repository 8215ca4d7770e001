"""From an evaluator's returned value to its outcome: the same rules for traces and sessions."""

from __future__ import annotations

import json
import math
from typing import Any

from evaluators.formulas.unit_interval import clamp, rounded
from evaluators.model import JSON, Failure, Outcome, Reason, Score
from evaluators.plan import Configured

MESSAGE_LIMIT = 500


def settle(configured: Configured, score: object, **more: Any) -> Outcome:
    """The outcome of a returned value; `more` are further fields of the outcome.

    A value outside [0, 1] or not a number is `failed`; a third party's is clamped, NaN apart. Success compares the
    value as returned with the threshold; the published score has four decimals.
    """
    if not isinstance(score, Score):
        message = f"returned {type(score).__name__}, not a Score"
        return failed(configured, Failure(type="invalid_score", message=message), **more)
    if configured.spec.method == "custom" and not _is_json(score.metadata):
        message = "metadata is not JSON"
        return failed(configured, Failure(type="invalid_metadata", message=message), **more)
    if score.state != "scored":
        return _unscored(configured, score, **more)
    if score.coverage is not None:
        more["coverage"] = score.coverage
    value = _number(score.value)
    if configured.spec.method == "custom":
        value = clamp(value)
    if not 0 <= value <= 1:  # also NaN
        message = f"{score.value!r} is not a number from 0 to 1"
        return failed(configured, Failure(type="invalid_score", message=message), **more)
    return _scored(configured, score, value, **more)


def failed(configured: Configured, failure: Failure, **more: Any) -> Outcome:
    """The evaluator was due and gave no score."""
    return _outcome(configured, state="failed", error=failure, **more)


def failure_of(error: Exception) -> Failure:
    """An evaluator's exception as the failure of its outcome."""
    text = f"{type(error).__name__}: {error}"
    return Failure(type="exception", message=text[:MESSAGE_LIMIT])


def skipped(configured: Configured, reason: str, **more: Any) -> Outcome:
    """The evaluator was due and its judge was not asked, on purpose: a budget is spent, for instance."""
    return _outcome(configured, state="skipped", reason=reason, **more)


def not_applicable(configured: Configured, reason: Reason, explanation: str) -> Outcome:
    """There was nothing to judge."""
    return _outcome(configured, state="not_applicable", reason=reason, explanation=explanation)


def _unscored(configured: Configured, score: Score, **more: Any) -> Outcome:
    reason: Reason | None = "nothing_to_judge" if score.state == "not_applicable" else None
    return _outcome(
        configured,
        state=score.state,
        reason=reason,
        assumed=score.assumed,
        explanation=score.explanation,
        metadata=score.metadata,
        truncated=score.truncated,
        **more,
    )


def _scored(configured: Configured, score: Score, value: float, **more: Any) -> Outcome:
    threshold = configured.threshold if score.threshold is None else score.threshold
    success = score.success
    if success is None and threshold is not None:
        success = value >= threshold
    metadata = score.metadata
    if configured.spec.verdict_in_metadata:
        metadata = {**metadata, "threshold": threshold, "success": success}
    return _outcome(
        configured,
        state="scored",
        score=rounded(value),
        success=success,
        threshold=threshold,
        explanation=score.explanation,
        metadata=metadata,
        evidence=score.evidence,
        truncated=score.truncated,
        **more,
    )


def _outcome(configured: Configured, **fields: Any) -> Outcome:
    spec = configured.spec
    fields.setdefault("final", configured.final)
    fields.setdefault("threshold", configured.threshold)
    return Outcome(
        evaluator=spec.name,
        version=spec.version,
        method=spec.method,
        options_digest=configured.options_digest,
        **fields,
    )


def _number(value: object) -> float:
    try:
        return float(value)  # pyright: ignore[reportArgumentType] - a third party can return anything
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _is_json(value: JSON) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
