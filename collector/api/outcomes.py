"""What each evaluator said of a trace or a session, in a few bytes: charts read hundreds of sessions at once.

Of an evaluator with several signals of one subject the final one counts: a stand-in gives way to its verdict.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from collector.api.store import DamagedError, SignalEntry

STEPS = 10_000  # scores are kept in steps of 1 / STEPS
MOST = 1_000
"""Evaluators that the index has numbers for; those of which it hears later have no charts."""
LAST_BIT = 62
"""Evaluators up to this number have a bit that says whether a session failed them; SQLite's numbers have 63."""
_NONE = -1  # in place of a score, or of whether it passed
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[int]).decode


class StoredOutcome(NamedTuple):
    evaluator: int  # its number in this index
    score: float | None
    passed: bool | None  # None: it neither passes nor fails


class SignalNumbers(msgspec.Struct, frozen=True):
    score: float | None = None
    success: bool | None = None


_FAILED = "SELECT failed FROM outcomes WHERE session = ? AND failed != 0"
_decode_numbers = msgspec.json.Decoder(SignalNumbers).decode


def pack(outcomes: Iterable[StoredOutcome]) -> bytes:
    flat: list[int] = []
    for evaluator, score, passed in outcomes:
        step = _NONE if score is None else round(STEPS * min(1.0, max(0.0, score)))
        flat += (evaluator, step, _NONE if passed is None else int(passed))
    return _encode(flat)


def failed_in(outcomes: Iterable[StoredOutcome]) -> int:
    """The evaluators that did not pass, as bits; those above `LAST_BIT` have none."""
    numbers = (each.evaluator for each in outcomes if each.passed is False)
    return sum(1 << number for number in numbers if number <= LAST_BIT)


def unpack(packed: bytes) -> list[StoredOutcome]:
    """The outcomes in these bytes. Raises DamagedError: they were."""
    try:
        flat = iter(_decode(packed))
        return [
            StoredOutcome(
                evaluator,
                None if step == _NONE else step / STEPS,
                None if passed == _NONE else passed > 0,
            )
            for evaluator, step, passed in zip(flat, flat, flat, strict=True)
        ]
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise DamagedError(f"outcomes are damaged: {error}") from error


def counting(signals: Iterable[SignalEntry]) -> dict[str, SignalNumbers]:
    """By evaluator, what its signal that counts says; those without a score are left out.

    Raises ValueError: a signal was damaged.
    """
    found: dict[str, SignalEntry] = {}
    for each in signals:
        old = found.get(each.evaluator)
        if old is None or (each.final, each.sequence) > (old.final, old.sequence):
            found[each.evaluator] = each
    scored = {name: _decode_numbers(each.json) for name, each in found.items()}
    return {name: each for name, each in scored.items() if each.score is not None}


class OutcomeTable:
    """Those that a change writes. Belongs to one change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] | None = None

    def write(self, changed: Sequence[tuple[int, int, Collection[SignalEntry]]]) -> None:
        rows: list[tuple[int, int, bytes, int]] = []
        for session, subject, signals in changed:
            outcomes = list(self._outcomes(signals))
            rows.append((session, subject, pack(outcomes), failed_in(outcomes)))
        self._connection.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?)", rows)

    def failed_in(self, session: int) -> int:
        failed = 0
        for (each,) in self._connection.execute(_FAILED, (session,)):
            failed |= each
        return failed

    def move(self, subject: int, old: int, new: int) -> None:
        statement = "UPDATE OR REPLACE outcomes SET session = ? WHERE session = ? AND subject = ?"
        self._connection.execute(statement, (new, old, subject))

    def _outcomes(self, signals: Iterable[SignalEntry]) -> Iterator[StoredOutcome]:
        for evaluator, each in counting(signals).items():
            number = self._number(evaluator)
            if number is not None:
                yield StoredOutcome(number, each.score, each.success)

    def _number(self, evaluator: str) -> int | None:
        numbers = self._numbers
        if numbers is None:
            found = self._connection.execute("SELECT name, id FROM evaluators")
            numbers = self._numbers = dict(found.fetchall())
        if evaluator not in numbers:
            if len(numbers) >= MOST:
                return None
            numbers[evaluator] = len(numbers) + 1
            row = (numbers[evaluator], evaluator)
            self._connection.execute("INSERT INTO evaluators VALUES (?, ?)", row)
        return numbers[evaluator]
