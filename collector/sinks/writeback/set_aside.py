"""Scores whose trace or session the tool does not have yet: set aside by subject and tried again. Pure."""

from collections import OrderedDict
from dataclasses import dataclass, field

from collector.log.port import Position
from collector.sinks.writeback.score import WrittenScore, WrittenSubject

MOST = 10_000  # scores that are set aside; the oldest go first
FIRST_WAIT = 5.0  # seconds; doubled at every try


@dataclass(slots=True)
class _SetAsideScore:
    since: float
    due: float
    next_wait: float = 2 * FIRST_WAIT
    scores: dict[str, WrittenScore] = field(default_factory=dict[str, WrittenScore])
    """By key: the newest."""


class SetAside:
    """Times are those of one clock that never goes back. `wait`: seconds after which a subject is given up."""

    def __init__(self, wait: float, most: int = MOST) -> None:
        self._wait = wait
        self._most = most
        self._subjects: OrderedDict[WrittenSubject, _SetAsideScore] = OrderedDict()
        """The one that was set aside first comes first."""
        self._places: dict[str, WrittenSubject] = {}  # by key of a score, its subject
        self.positions: set[Position] = set()  # of the signals whose scores wait here
        self.given_up = 0  # scores so far that no try is left for

    def __contains__(self, subject: WrittenSubject) -> bool:
        return subject in self._subjects

    def __len__(self) -> int:
        return len(self._places)

    def put(self, score: WrittenScore, now: float) -> None:
        """Behind the others of its subject; an earlier one of its key is not written any more."""
        self.drop(score.key)
        waiting = self._subjects.get(score.subject)
        if waiting is None:
            waiting = self._subjects[score.subject] = _SetAsideScore(
                now, now + min(FIRST_WAIT, self._wait)
            )
        waiting.scores[score.key] = score
        self._places[score.key] = score.subject
        self.positions.add(score.position)
        while len(self._places) > self._most:
            self.give_up(next(iter(self._subjects)))

    def due(self, now: float, most: int) -> list[WrittenScore]:
        """Scores of subjects whose time has come, at most about so many."""
        found: list[WrittenScore] = []
        for waiting in self._subjects.values():
            if waiting.due <= now and len(found) < most:
                found += waiting.scores.values()
        return found

    def is_missing(self, subject: WrittenSubject, now: float) -> None:
        """A try found that the tool still has no such subject: wait twice as long, or give it up."""
        waiting = self._subjects[subject]
        left = waiting.since + self._wait - now
        if left <= 0:
            self.give_up(subject)
            return
        waiting.due = now + min(waiting.next_wait, left)
        waiting.next_wait *= 2

    def give_up(self, subject: WrittenSubject) -> None:
        self.given_up += len(self._subjects[subject].scores)
        for key in [*self._subjects[subject].scores]:
            self.drop(key)

    def drop(self, key: str) -> None:
        subject = self._places.pop(key, None)
        if subject is None:
            return
        waiting = self._subjects[subject]
        self.positions.discard(waiting.scores.pop(key).position)
        if not waiting.scores:
            del self._subjects[subject]

    def forget(self, partition: int) -> None:
        scores = [each for some in self._subjects.values() for each in some.scores.values()]
        for each in scores:
            if each.position.partition == partition:
                self.drop(each.key)
