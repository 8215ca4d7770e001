"""Why a session has no score, as the page says it. Pure."""

from __future__ import annotations

import msgspec

from evaluators.coverage import low_coverage

LENGTH = 300
"""Characters of a reason; the signal has the whole."""


class _Told(msgspec.Struct):
    """What a session's signal without a score says of itself."""

    reason: str | None = None
    explanation: str | None = None
    coverage: dict[str, int] | None = None
    error: dict[str, str | None] | None = None


_decode = msgspec.json.Decoder(_Told).decode


def why_unscored(signal: bytes) -> str | None:
    """The explanation of a published signal without a score, else what its reason or its error says; None: nothing."""
    told = _decode(signal)
    if told.error is not None:
        return f"failed with {told.error.get('type')}"[:LENGTH]
    if told.explanation:
        return told.explanation[:LENGTH]
    if told.reason == "low_coverage" and told.coverage is not None:
        return low_coverage((told.coverage["expected"], told.coverage["present"]), {})
    return told.reason and told.reason.replace("_", " ")
