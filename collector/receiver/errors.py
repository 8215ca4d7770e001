"""What can be wrong with a request, beyond collector/errors.py.

SpanwiseError
+-- Retryable
|   +-- NoRoom        too many bytes are being taken in already
|   +-- SlowSender    the body did not arrive in time
+-- Permanent
    +-- TooLarge      the request is above `receiver.max_request`, also after decompression
"""

from __future__ import annotations

from collector.errors import ConfigError, Permanent, Retryable
from collector.runtime.net import address


class NoRoom(Retryable):
    """Too many bytes are being taken in already."""


class SlowSender(Retryable):
    """The body did not arrive in time."""


class TooLarge(Permanent):
    """The request is above the limit of one request, as sent or after decompression."""


def cannot_listen(key: str, host: str, port: int, why: str) -> ConfigError:
    """The error of a listener that cannot be bound; `key` names its section of the configuration."""
    return ConfigError(
        f"{key}: cannot listen on {address(host, port)}: {why}; stop what listens there or set {key}.port"
    )
