"""The cluster, as every part of the Kafka log uses it: settings, names, topics, and how long a request may take."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from collector.clock import Clock
from collector.config.tree import KafkaLogConfig
from collector.errors import LogUnavailable
from collector.kafka.client import ClientSettings, within
from collector.log.families import LogFamilies
from collector.log.port import TOPICS, WINDOWS

LARGEST = 20 << 20
"""Bytes of the largest record of our topics, Kafka's own bytes included."""
CLOCKS_DIFFER = 2.0
"""Seconds by which a broker's clock may be behind ours (docs/decisions/002)."""
STOPPING = 3.0
"""Seconds that a request may take once the process stops; each one that runs out of time halves them."""
SHORTEST = 0.5
"""The seconds are halved down to this."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Our topics, as the cluster describes them: how many partitions, and the bytes of the largest record batch."""

    partitions: Mapping[str, int]
    limits: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Cluster:
    """One process's view of its cluster. `topics` None: it has not been reached yet."""

    settings: KafkaLogConfig
    client: ClientSettings
    clock: Clock
    families: LogFamilies
    deadline: float
    """Seconds that any request may take."""
    owner: bytes
    """Names this process: tells its state records from those of a former owner."""
    topics: Topics | None = None
    stopping: bool = False

    def begin_shutdown(self) -> None:
        """The process stops: requests, those under way too, wait for a short time only."""
        self.stopping = True
        self.deadline = min(self.deadline, STOPPING)

    async def within(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of a request, in time.

        Raises:
            TimeoutError: it was given up; it may still happen.
        """
        try:
            return await within(lambda: self.deadline, work)
        except TimeoutError:
            if self.stopping:
                self.deadline = max(SHORTEST, self.deadline / 2)
            raise

    def name(self, topic: str) -> str:
        """The topic's name in the cluster."""
        if topic not in TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        return f"{self.settings.topic_prefix}{topic}"

    def group(self, group: str) -> str:
        """The group's name in the cluster."""
        return f"{self.settings.group}.{group}"

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; the configured number until the cluster has been reached."""
        if topic not in TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        if self.topics is not None:
            return self.topics.partitions[topic]
        return 1 if topic == WINDOWS else self.settings.partitions

    def reached(self) -> Topics:
        """The topics.

        Raises:
            LogUnavailable: the cluster has not been reached since the start.
        """
        if self.topics is None:
            raise LogUnavailable(f"Kafka at {self.settings.bootstrap_servers} was not reached yet")
        return self.topics
