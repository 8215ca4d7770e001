"""What went wrong in a span, in one text."""

from __future__ import annotations

from evaluators.dialects.decoding.values import string
from evaluators.model import Span


def error_of(span: Span) -> str | None:
    """The message of a span that ended in error, from its exception, its status, else its error type."""
    if span.status != "error":
        return None
    said = exception_of(span) or string(span.status_message)
    return said or string(span.attributes.get("error.message")) or error_type(span) or "error"


def exception_of(span: Span) -> str | None:
    """The message of the span's last exception event, else its type."""
    for event in reversed(span.events):
        if event.name == "exception":
            message = string(event.attributes.get("exception.message"))
            return message or string(event.attributes.get("exception.type"))
    return None


def error_type(span: Span) -> str | None:
    """The convention's `error.type`."""
    return string(span.attributes.get("error.type"))
