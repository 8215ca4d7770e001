"""What pages say of the service that only the layers above know: its evaluators, and what its doctor finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Examine = Callable[[Row, Sequence[Row]], object]
"""A trace as `inspect` shows it and its spans in; what the doctor notes of it out."""
Diagnose = Callable[[Sequence[object], Sequence[Row]], Row]
"""The notes and the sessions of those traces in; the findings out, as `spanwise doctor --format json` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """By default nothing is known."""

    catalogue: Callable[[], Sequence[Row]] = tuple
    """Every evaluator: name, scope, method, version, source, doc, threshold, options, and why it is off where it is."""
    examine: Examine = lambda _trace, _spans: None
    diagnose: Diagnose = lambda _notes, _sessions: {"stacks": (), "unscored": (), "judge": None}
