"""How the log's size is shared out between topics (docs/operate.md)."""

from __future__ import annotations

from dataclasses import dataclass

from collector.log.port import CLOSINGS, SESSIONS, SIGNALS, SPANS, TOPICS, TRACES, WINDOWS

MAX_RECORD = 20 << 20
"""Bytes of key, value and headers together; Kafka's topics are created with the same limit."""

_POOLS: dict[str, tuple[tuple[str, ...], float]] = {
    SPANS: ((SPANS, CLOSINGS), 0.50),
    CLOSINGS: ((SPANS, CLOSINGS), 0.50),
    TRACES: ((TRACES,), 0.25),
    SIGNALS: ((SIGNALS,), 0.15),
    SESSIONS: ((SESSIONS, WINDOWS), 0.10),
    WINDOWS: ((SESSIONS, WINDOWS), 0.10),
}
_STOP = {SPANS: 0.9}
"""Appends to `spans` stop early: closing traces is what frees them, and closings need the rest."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What each topic may hold, in bytes of `max_size`."""

    max_size: int

    def pool(self, topic: str) -> tuple[str, ...]:
        """The topics that share one limit with this one, itself included."""
        return _POOLS[topic][0]

    def share(self, topic: str) -> int:
        """The bytes that the topic's pool may hold."""
        return int(self.max_size * _POOLS[topic][1])

    def limit(self, topic: str) -> int:
        """The bytes of the pool above which the topic takes no more (or drops its oldest)."""
        return int(self.share(topic) * _STOP.get(topic, 1.0))

    def largest(self, topic: str) -> int:
        """The largest record of the topic that can ever be written."""
        return min(MAX_RECORD, self.limit(topic) * 4 // 5)

    def limits(self) -> dict[str, int]:
        """The share by topic."""
        return {topic: self.share(topic) for topic in TOPICS}
