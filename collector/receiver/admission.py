"""Admission: how many bytes of requests may be in memory at once, over both transports, and one sender's share of them.

    limit    all senders together (four times `receiver.max_request`)
    7/8      a sender alone, so that another one's first request finds room at once
    share    a sender while another one was refused for lack of room lately (`fairness.share`)

The only request of a sender is held against `limit` alone: any request that is within `receiver.max_request` can be
taken, whatever the share. A sender is a token, or an address where no token is needed.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

from prometheus_client import Gauge

from collector.base.clock import Clock
from collector.receiver.answers import NoRoom, OverShare

ALONE = 7 / 8  # of the limit: what a sender may hold while no other one waits
WAITING = 10.0  # seconds after a refusal in which its sender counts as waiting: refused senders come back after 1 to 4


@dataclass(slots=True)
class _Sender:
    requests: int = 0
    held: int = 0


@dataclass(slots=True, kw_only=True)
class Admission:
    """A budget of bytes. Owned by one event loop."""

    limit: int  # bytes that may be held in all
    share: float  # of `limit`, what one sender may hold while others wait
    gauge: InitVar[Gauge]
    clock: Clock
    _held: int = 0
    _senders: dict[str, _Sender] = field(default_factory=dict[str, _Sender])
    _refused: dict[str, float] = field(default_factory=dict[str, float])
    """The two senders that were refused last, and when: one of them is another than any given one."""

    def __post_init__(self, gauge: Gauge) -> None:
        # Set twice for each request, it cost as much as a small one's split.
        gauge.set_function(lambda: self._held)

    @property
    def held(self) -> int:
        return self._held

    def ticket(self, sender: str) -> Ticket:
        return Ticket(self, sender)

    def enter(self, sender: str) -> None:
        self._senders.setdefault(sender, _Sender()).requests += 1

    def leave(self, sender: str, size: int) -> None:
        who = self._senders[sender]
        who.requests -= 1
        who.held -= size
        if not who.requests:
            del self._senders[sender]
        self._held -= size

    def take(self, sender: str, size: int) -> None:
        """Take bytes out of the budget.

        Raises NoRoom: they do not fit now; nothing was taken. Raises OverShare: they fit, but this sender holds its
        share.
        """
        who = self._senders[sender]
        if self._held + size > self.limit:
            self._wait(sender)
            raise NoRoom("too many bytes are being received (four times receiver.max_request)")
        if who.requests > 1 and who.held + size > self._most(sender):
            self._wait(sender)
            raise OverShare(
                "this sender holds its share of the bytes being received (fairness.share); send fewer requests at once"
            )
        who.held += size
        self._held += size

    def _most(self, sender: str) -> float:
        if self.share >= ALONE or self._is_another_waiting(sender):
            return self.share * self.limit
        return ALONE * self.limit

    def _is_another_waiting(self, sender: str) -> bool:
        if not self._refused:
            return False
        now = self.clock()
        return any(who != sender and 0 <= now - at < WAITING for who, at in self._refused.items())

    def _wait(self, sender: str) -> None:
        self._refused.pop(sender, None)
        self._refused[sender] = self.clock()
        if len(self._refused) > 2:
            del self._refused[next(iter(self._refused))]


@dataclass(slots=True)
class Ticket:
    """What one request holds of the budget."""

    admission: Admission
    sender: str
    _held: int = 0

    def grow(self, size: int) -> None:
        """Hold `size` bytes in all; never shrinks.

        Raises NoRoom: they do not fit now. Raises OverShare: the sender holds its share.
        """
        if size > self._held:
            self.admission.take(self.sender, size - self._held)
            self._held = size

    def __enter__(self) -> Ticket:
        self.admission.enter(self.sender)
        return self

    def __exit__(self, *error: object) -> None:
        self.admission.leave(self.sender, self._held)
        self._held = 0
