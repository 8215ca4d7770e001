"""The event `gen_ai.evaluation.result` as feedback, and the values that all events have in common. Pure."""

import math
from collections.abc import Mapping
from typing import cast

from collector.base.errors import Undecodable
from collector.records.feedback import FeedbackSubject, Given, Kind
from collector.records.signal import rfc3339
from evaluators.model import JSON

_KINDS = frozenset({"human", "code", "llm"})
_LATEST = 253_402_300_799
"""The last second that RFC 3339 can say."""


def evaluation(
    attributes: Mapping[str, JSON], subject: FeedbackSubject, nanos: int
) -> Given | Undecodable:
    """One event; `subject`: the fields of `Given` that say what it is about, `nanos`: its time."""
    name = text(attributes.get("gen_ai.evaluation.name"))
    if name is None:
        return Undecodable("an evaluation has no gen_ai.evaluation.name")
    if not subject:
        return Undecodable("an evaluation names neither a trace nor a conversation")
    return Given(
        **subject,
        name=name,
        value=number(attributes.get("gen_ai.evaluation.score.value")),
        label=text(attributes.get("gen_ai.evaluation.score.label")),
        comment=text(attributes.get("gen_ai.evaluation.explanation")),
        kind=kind_of(attributes.get("spanwise.feedback.kind")),
        time=time_of(nanos),
    )


def text(value: JSON) -> str | None:
    """A text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def number(value: JSON) -> bool | float | None:
    """A finite number or a truth value, else None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def kind_of(value: JSON) -> Kind:
    """Who judged, in any letters; `code` where it is not said, or is another word."""
    kind = value.lower() if isinstance(value, str) else ""
    return cast(Kind, kind) if kind in _KINDS else "code"


def time_of(nanos: int) -> str | None:
    """A time as `Given` has it; None: it is not said."""
    return rfc3339(min(nanos / 1e9, _LATEST)) if nanos else None
