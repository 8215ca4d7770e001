"""What is said of subjects (sessions, traces) until each has settled, then enters a comparison once. Pure.

The order is a function of the records and of how far log time has passed, never of how partitions interleave: a
subject enters at the log time at which it has settled, in the order of (that time, subject), and what comes later
changes nothing.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Generic, NamedTuple, TypeVar

from collector.base.telemetry import LONGEST_LABEL
from collector.records.windows import SettlingSubject
from collector.watch.entered import Entered

MAX_SETTLING = 4096  # size of what may settle at the same time
FEW = 64  # stale dues that are never worth a sweep


H = TypeVar("H", bound=SettlingSubject)


class Update(NamedTuple):
    subject: str
    digest: int
    rank: tuple[int, bool]  # as `SettlingSubject.rank`
    time: float  # the record's log time
    seen: float  # log time at which the subject's newest span was first seen
    partition: int
    offset: int


class Settling(Generic[H]):
    """The subjects of one comparison that have not settled, and the newest that have entered."""

    def __init__(
        self,
        held: Iterable[H] = (),
        next_offsets: Mapping[int, int] | None = None,
        entered: Entered | None = None,
        *,
        most: int = MAX_SETTLING,
    ) -> None:
        """As they were stored. `most`: the size of what may settle at once."""
        self._held = {each.subject: each for each in held}
        self.next_offsets = dict(next_offsets or {})
        """By partition, the offset below which every record is taken in."""
        self.entered = entered or Entered()
        self._most = most
        self._size = sum(each.size for each in self._held.values())
        self._dues: list[tuple[float, str]] = []
        """A heap of (log time, subject) at which subjects settle, also of some that have changed or gone since."""
        self._note_dues()

    @property
    def held(self) -> tuple[H, ...]:
        return tuple(self._held.values())

    def is_decided(self, update: Update) -> bool:
        """Whether the update comes too late: its subject has entered or settled, or something later of it is here."""
        held = self._held.get(update.subject)
        if held is not None:
            return held.due <= update.time or update.rank <= held.rank
        return update.digest in self.entered

    def offer(self, update: Update, held: H) -> bool | None:
        """Take in what is said of a subject that is not decided.

        Returns whether it was new; None: too many settle at once, and it is left out.
        """
        subject, partition = update.subject, update.partition
        if update.offset < self.next_offsets.get(partition, 0):
            return False  # taken in before, perhaps before a restart
        before = self._held.get(subject)
        size = self._size + held.size
        if before is not None:
            size -= before.size
        if size > self._most and size > self._size:
            return None
        self.next_offsets[partition] = update.offset + 1
        self._held[subject], self._size = held, size
        if len(self._dues) > 2 * len(self._held) + FEW:
            self._note_dues()
        else:
            heappush(self._dues, (held.due, subject))
        return True

    def withdraw(self, update: Update) -> bool:
        """The subject's latest is another agent's, or missing; whether one was here that has not settled."""
        if update.subject not in self._held or self.is_decided(update):
            return False
        if update.offset < self.next_offsets.get(update.partition, 0):
            return False
        self.next_offsets[update.partition] = update.offset + 1
        self._size -= self._held.pop(update.subject).size
        return True

    def is_due(self, passed: float) -> bool:
        return bool(self._dues) and self._dues[0][0] < passed

    def entering(self, passed: float) -> Iterator[H]:
        """What has settled before log time `passed`, which every partition has reached; it has entered then.

        None of it can still change: a record that comes has `passed` or a later time.
        """
        dues, held = self._dues, self._held
        while self.is_due(passed):
            due, subject = heappop(dues)
            each = held.get(subject)
            if each is None or each.due != due:
                continue  # something later took its place, or it was withdrawn
            del held[subject]
            self._size -= each.size
            self.entered.add(digest_of(subject))
            yield each

    def _note_dues(self) -> None:
        self._dues = [(each.due, each.subject) for each in self._held.values()]
        heapify(self._dues)


def bounded(name: str) -> str:
    """The name of a subject or session as it is stored: a digest instead of a long one."""
    if len(name) <= 2 * LONGEST_LABEL:
        return name
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()


@lru_cache(maxsize=4096)
def digest_of(subject: str) -> int:
    """The number of 64 bits by which it is remembered that a subject has entered."""
    return int.from_bytes(hashlib.sha256(subject.encode(errors="replace")).digest()[:8])
