"""A write to a connection that was just lost, made to fail as aiokafka expects it to.

On uvloop it raises RuntimeError, and aiokafka expects OSError (aio-libs/aiokafka#1038): the task that keeps a client's
metadata then ends, and whatever waits for a new leader or coordinator waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError

_WRITES = ("send", "_send_sasl_token")


def heed_lost_connections() -> None:
    """Do so for every connection of this process; doing it again changes nothing."""
    for name in _WRITES:
        write = getattr(AIOKafkaConnection, name)
        if not hasattr(write, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _heeding(write))


def _heeding(write: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write)
    def heeding(self: AIOKafkaConnection, *arguments: Any, **options: Any) -> Any:
        try:
            return write(self, *arguments, **options)
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"the connection was lost: {error}") from error

    return heeding
