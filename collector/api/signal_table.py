"""The signals that a change touches: read once, written once for each subject."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from collector.api.reading import Reading
from collector.api.store import SignalEntry, run_of, sequence_of

_runs = msgspec.json.Decoder(list[int])
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _Subject:
    signals: dict[str, SignalEntry]
    runs: set[int]
    is_changed: bool = False


class StoredSignals:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._subjects: dict[int, _Subject] = {}
        last = reading.connection.execute("SELECT max(run) FROM recent").fetchone()[0]
        self._run: int = last or 0
        self._place = 0
        self._forgotten = -1
        self._running: int | None = None  # the subject whose signals arrive now

    def of(self, subject: int) -> dict[str, SignalEntry]:
        held = self._subjects.get(subject) or self._load(subject)
        return held.signals

    def begin(self, subject: int) -> None:
        self._subjects[subject] = _Subject({}, set())

    def load(self, subjects: Iterable[int]) -> None:
        """Read the signals of these subjects, those that are not held yet."""
        wanted = {*subjects} - self._subjects.keys()
        for subject in wanted:
            self.begin(subject)
        for subject, found in self._reading.signals_of_all(wanted):
            self._subjects[subject] = _held(found)

    def next_sequence(self, subject: int) -> int:
        """The place of a signal of this subject that arrives now; the subject will be written."""
        if subject != self._running:
            self._running = subject
            self._run += 1
            self._place = sequence_of(self._run, 0)
            (self._subjects.get(subject) or self._load(subject)).is_changed = True
        self._place += 1
        return self._place

    def drop(self, subject: int) -> int:
        held = self._subjects.pop(subject, None)
        self._running = None if self._running == subject else self._running
        execute = self._reading.connection.execute
        row = execute("SELECT count, runs FROM signals WHERE subject = ?", (subject,)).fetchone()
        if row is not None:
            runs = _read_runs(row[1])
            self._forget_runs(runs)
            self._note_forgotten(max(runs, default=-1))
            execute("DELETE FROM signals WHERE subject = ?", (subject,))
        if held is not None:
            return len(held.signals)
        return 0 if row is None else row[0]

    def changed(self) -> Iterator[tuple[int, Collection[SignalEntry]]]:
        for subject, held in self._subjects.items():
            if held.is_changed:
                yield subject, held.signals.values()

    def write(self) -> None:
        signals: list[tuple[int, int, str, bytes]] = []
        new: list[tuple[int, int]] = []
        gone: set[int] = set()
        for subject, held in self._subjects.items():
            if not held.is_changed:
                continue
            kept = list(held.signals.values())
            runs = {run_of(each.sequence) for each in kept}
            gone |= held.runs - runs
            new += [(run, subject) for run in runs - held.runs]
            packed = self._reading.packing.pack(kept)
            signals.append((subject, len(kept), _encode(sorted(runs)).decode(), packed))
        self._forget_runs(gone)
        executemany = self._reading.connection.executemany
        executemany("INSERT INTO recent (run, subject) VALUES (?, ?)", sorted(new))
        executemany("INSERT OR REPLACE INTO signals VALUES (?, ?, ?, ?)", signals)
        self._subjects.clear()

    def _note_forgotten(self, run: int) -> None:
        if run > max(self._forgotten, self._reading.forgotten_run()):
            self._forgotten = run
            self._reading.connection.execute(
                "INSERT OR REPLACE INTO about VALUES ('forgotten', ?)", (run,)
            )

    def _forget_runs(self, runs: set[int]) -> None:
        if runs:
            rows = [(run,) for run in runs]
            self._reading.connection.executemany("DELETE FROM recent WHERE run = ?", rows)

    def _load(self, subject: int) -> _Subject:
        held = self._subjects[subject] = _held(self._reading.signals_of(subject))
        return held


def _held(found: list[SignalEntry]) -> _Subject:
    return _Subject({each.slot: each for each in found}, {run_of(e.sequence) for e in found})


def _read_runs(text: object) -> set[int]:
    try:
        return set(_runs.decode(text if isinstance(text, str) else b""))
    except msgspec.DecodeError as error:
        raise ValueError(f"runs are damaged: {error}") from error
