"""One process: the rooms of its roles, wired. The only module that knows them all.

    receiver --spans--> assembly --traces--> scoring --signals--> sinks, prometheus, api

Started from the end to the beginning and stopped from the beginning to the end, so that each room can hand over what
it holds to the next.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

log = logging.getLogger(__name__)

STOP_GRACE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where a started process can be reached; None for what its roles do not serve."""

    grpc: str | None
    http: str | None
    admin: str
