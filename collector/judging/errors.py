"""Why a subject gets no verdict from its judge."""

from __future__ import annotations

from collector.errors import SpanwiseError


class JudgeDiedError(SpanwiseError):
    """The judge process died on the subject as often as may be."""


class JudgeLateError(SpanwiseError):
    """No verdict within `judge.max_lag`: the desk has given one by now."""
