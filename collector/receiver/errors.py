"""What can be wrong with a request, beyond collector/errors.py.

SpanwiseError
+-- Retryable
|   +-- NoRoom        too many bytes are being taken in already
|   +-- SlowSender    the body did not arrive in time
+-- Permanent
    +-- TooLarge      the request is above `receiver.max_request`, also after decompression
"""

from __future__ import annotations

from collector.errors import Permanent, Retryable


class NoRoom(Retryable):
    """Too many bytes are being taken in already."""


class SlowSender(Retryable):
    """The body did not arrive in time."""


class TooLarge(Permanent):
    """The request is above the limit of one request, as sent or after decompression."""
