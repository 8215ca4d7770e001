"""The Sink port: where signals go. One conformance suite for all of them (tests/support/sink_contract.py)."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from collector.base.errors import Permanent
from collector.config.tree import Config
from collector.log.port import Position
from collector.records.signal_batch import Published

T = TypeVar("T")


class Refused(Permanent):
    """Some signals can never be delivered by this sink; every other one of the call has been."""

    def __init__(self, reasons: Mapping[Position, str]) -> None:
        super().__init__(f"{len(reasons)} signals can never be delivered")
        self.reasons = dict(reasons)


class Sink(Protocol):
    """Delivers the signals of topic `signals`. Owned by one `Delivery`, which calls it from one task.

    A new sink is a class in a file of this folder, a section in `collector.config.tree.Sinks`, and a line in
    `collector.service.sinks.SINKS`.
    """

    name: ClassVar[str]
    """The key of its section under `sinks` in the configuration; label `sink` of its metrics."""

    async def deliver(self, signals: Sequence[Published]) -> None:
        """Hand the signals over, in order; return when every one is safely there.

        Called again with the same signals after `Retryable`, until it returns or the process stops. A signal may
        be delivered more than once, always with the same bytes.

        Raises:
            Retryable: not all of them could be delivered now.
            Refused: some can never be; all others are delivered.
        """
        ...

    async def close(self, deadline: float) -> None:
        """Close connections and files within `deadline` seconds, whatever the other side does."""
        ...


@runtime_checkable
class SetsAside(Protocol):
    """A sink that keeps signals which the other side cannot place yet, and tries them again while others go on."""

    @property
    def waiting(self) -> Collection[Position]:
        """Those that are set aside: the commit stays at the oldest of them."""
        ...

    @property
    def unmatched(self) -> int:
        """How many signals were given up so far, because the other side never had what they are about."""
        ...

    async def again(self) -> None:
        """Try those that are due.

        Raises:
            Retryable: not now.
            Refused: some can never be delivered.
        """
        ...

    def forget(self, partition: int) -> None:
        """Another process reads this partition now, and what was set aside of it."""
        ...


class SinkKind(Protocol):
    """The class of a sink: what the configuration makes of its section, and how `validate --connect` tries it.

    What does not fit together within its section, the section says itself: `Section.conflicts`.
    """

    name: str

    def configured(self, config: Config) -> Sink | None:
        """The sink; None if its section under `sinks` is not set.

        Raises:
            ConfigError: the section names something that cannot be used.
        """
        ...

    async def reachable(self, config: Config) -> str | None:
        """Try where it delivers to, with its section set, and leave nothing there.

        Returns None if a signal would be taken now; else one line that begins with the path of the setting to check.
        An answer or the line comes within seconds, and no line holds a secret or a line break.

        Raises:
            ConfigError: as `configured`.
        """
        ...


def pieces(
    items: Iterable[T], size_of: Callable[[T], int], *, largest: int, most: float = math.inf
) -> Iterator[Sequence[T]]:
    """In order, each of at most `most` items and `largest` bytes; one that is larger is alone."""
    piece: list[T] = []
    size = 0
    for each in items:
        more = size_of(each)
        if piece and (len(piece) >= most or size + more > largest):
            yield piece
            piece, size = [], 0
        piece.append(each)
        size += more
    if piece:
        yield piece


def delivery_group(sink: str) -> str:
    """The group whose commits hold the signals that the sink of this name has not delivered."""
    return f"sink.{sink}"
