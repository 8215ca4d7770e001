"""Ranks a session among the earlier sessions of its agent, and a run among the earlier runs of its task. Pure.

    record of a session's work    -> ranked among the sessions that closed before -> signals
                                  -> if it closed: put into the histories
    record of a possible runaway  -> compared with the traces that closed before  -> signal (`runaways.py`)

The order of records decides, as it is the order of closing. A session never ranks against itself: opened again, it
replaces its own entry when it closes.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from collector.log.state_table import StateTable
from collector.records.signal import Signal, signal_id
from collector.records.subject import Subject, shared_fields, signal_of
from collector.records.traces import RunawayRecord, WorkRecord
from collector.watch.ranking import runaways
from collector.watch.ranking.histories import Histories, digest_of, number_of
from collector.watch.ranking.runaways import ModelCallCount
from evaluators.formulas.agreement import TaskRunsHistory
from evaluators.formulas.trace_calls import TraceCallsHistory
from evaluators.formulas.work import WorkHistory
from evaluators.model import Outcome, Session
from evaluators.plan import Configured
from evaluators.resources import EarlierRuns, EarlierSessions
from evaluators.run import CANCELLED, NO_TURN, not_applicable, rank_session
from evaluators.session.repeated_calls import with_usual_calls

MAX_AGENTS = 1000  # agents whose sessions are remembered, 56 kB each
MAX_TASKS = 4096  # tasks whose runs are remembered
RECENT = 1024  # newest closed sessions and possible runaways of which another record is known to be a repeat


class RankedSession(NamedTuple):
    signals: tuple[Signal, ...] = ()
    is_closed: bool = False  # whether it was put into the histories
    call: ModelCallCount | None = None  # what was put into a history of traces
    is_first: bool | None = None
    """Whether the signals are the first final ones of their subject; None: the final ones of a session are."""
    start: int = 0  # of the trace that was scored, unix nanoseconds; 0 for a session


class Ranker:
    """The histories of all agents and tasks, and the evaluators that rank."""

    def __init__(
        self,
        ranked: Sequence[Configured],
        *,
        max_agents: int = MAX_AGENTS,
        max_tasks: int = MAX_TASKS,
    ) -> None:
        self._ranked = ranked
        self._agents = Histories("agents", max_agents, bytes, WorkHistory.pack, WorkHistory)
        self._tasks = Histories(
            "tasks",
            max_tasks,
            tuple[tuple[int, bytes], ...],
            lambda history: history.packed,
            TaskRunsHistory,
        )
        self._calls = Histories(
            "calls", max_agents, bytes, TraceCallsHistory.pack, TraceCallsHistory
        )
        self._recent: dict[str, None] = {}

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self._agents), len(self._tasks)

    @property
    def recent(self) -> tuple[str, ...]:
        return tuple(self._recent)

    def take(self, record: WorkRecord | RunawayRecord) -> RankedSession:
        """Rank a session as it is now; if it closed, remember it. Or tell whether a trace runs away."""
        if isinstance(record, RunawayRecord):
            return self._take_runaway(record)
        call = None
        if record.trace is not None:
            call = ModelCallCount.of(record.service, record.trace)
            self.put_call(call)
        return self._take_session(record)._replace(call=call)

    def _take_runaway(self, record: RunawayRecord) -> RankedSession:
        mark = runaways.mark(record)
        if mark in self._recent:  # a crash made assembly or scoring look at it once more
            return RankedSession()
        self._remember(mark)
        signal = runaways.runaway_signal(self._calls, record)
        return RankedSession(
            () if signal is None else (signal,),
            is_first=record.is_first,
            start=record.subject.start,
        )

    def put_call(self, call: ModelCallCount) -> None:
        runaways.put(self._calls, call)

    def _take_session(self, record: WorkRecord) -> RankedSession:
        mark = _mark(record)
        if mark in self._recent:  # a crash made scoring close it once more
            return RankedSession()
        signals = tuple(self._signals(record))
        is_closed = record.closed is not None
        if is_closed:
            self._remember(mark)
            self.put(record)
        return RankedSession(signals, is_closed)

    def put(self, record: WorkRecord) -> None:
        if not record.work.turns or record.cancelled:
            return
        session = number_of(record.service, record.session_id)
        agent, task = _agent(record), _task(record)
        work = self._agents.get(record.service, agent) or WorkHistory()
        work.put(session, record.work)
        self._agents.put(record.service, agent, work)
        if task is not None and record.has_text:
            runs = self._tasks.get(record.service, task) or TaskRunsHistory()
            runs.put(session, record.writes)
            self._tasks.put(record.service, task, runs)

    @property
    def tables(self) -> tuple[StateTable[tuple[str, str], Any], ...]:
        return self._agents.table, self._tasks.table, self._calls.table

    def evicted(self) -> dict[str, int]:
        found = {"agents": self._agents.evicted + self._calls.evicted, "tasks": self._tasks.evicted}
        self._agents.evicted = self._calls.evicted = self._tasks.evicted = 0
        return found

    def restore_recent(self, marks: Sequence[str]) -> None:
        self._recent = dict.fromkeys(marks)

    def _signals(self, record: WorkRecord) -> Iterator[Signal]:
        """Final signals once it is closed; before, the scores so far."""
        if record.repeated is not None:
            yield _signal(record, *self._completed(record, record.repeated))
        for each in self._ranked:
            outcome, among = self._outcome(each, record)
            if each.emit and (record.closed is not None or outcome.state == "scored"):
                yield _signal(record, outcome, among)

    def _completed(self, record: WorkRecord, alone: Outcome) -> tuple[Outcome, str]:
        """The outcome of `repeated_calls`, and the digest of the history if that made it another one."""
        alone = replace(alone, final=record.closed is not None)
        history = self._agents.get(record.service, _agent(record))
        if history is None:
            return alone, ""
        session = number_of(record.service, record.session_id)
        outcome = with_usual_calls(alone, record.work, history, session)
        return outcome, "" if outcome is alone else history.digest(session)

    def _outcome(self, configured: Configured, record: WorkRecord) -> tuple[Outcome, str]:
        """The outcome, and the digest of the history that it was ranked in: empty when it was not."""
        final = record.closed is not None
        if not record.work.turns:
            return not_applicable(configured, "not_a_turn", NO_TURN, final=final), ""
        if record.cancelled:
            return not_applicable(configured, "nothing_to_judge", CANCELLED, final=final), ""
        earlier = self._earlier(configured, record)
        session = Session(
            service=record.service,
            session_id=record.session_id,
            agent=record.agent,
            closed=record.closed,
        )
        outcome = rank_session(configured, session, earlier)
        if outcome.state != "scored" or earlier.history is None:
            return outcome, ""
        return outcome, earlier.history.digest(earlier.session)

    def _earlier(self, configured: Configured, record: WorkRecord) -> EarlierSessions | EarlierRuns:
        session = number_of(record.service, record.session_id)
        if EarlierSessions in configured.spec.resources.values():
            history = self._agents.get(record.service, _agent(record)) or WorkHistory()
            return EarlierSessions(session=session, work=record.work, history=history)
        task = _task(record)
        runs = None
        if task is not None:
            runs = self._tasks.get(record.service, task) or TaskRunsHistory()
        return EarlierRuns(
            session=session, writes=record.writes, has_text=record.has_text, history=runs
        )

    def _remember(self, mark: str) -> None:
        self._recent[mark] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]


def _signal(record: WorkRecord, outcome: Outcome, among: str) -> Signal:
    """The signal of an outcome; `among`: the digest of the history that made it."""
    id_ = signal_id(
        scope="session",
        service=record.service,
        subject=record.session_id,
        outcome=outcome,
        input_digest=_input(record, among),
    )
    return signal_of(Subject(scope="session", **shared_fields(record, Subject)), outcome, id_)


def _input(record: WorkRecord, among: str) -> str:
    return (
        hashlib.sha256(f"{record.digest},{among}".encode()).hexdigest() if among else record.digest
    )


def _agent(record: WorkRecord) -> str:
    return digest_of(record.service, record.agent, record.model)


def _task(record: WorkRecord) -> str | None:
    return None if record.task_id is None else digest_of(record.service, record.task_id)


def _mark(record: WorkRecord) -> str:
    return digest_of(record.service, record.session_id, str(record.revision), str(record.closed))
