"""When a judge is asked beyond `judge.sample`, and what it then says of a drop. Pure.

    a version is new          -> its first sessions, and as many of the version before
    a drop is raised, or is near -> sessions from now on, 40; undecided: up to 80, then 160
                                 -> looks at 20, 40, 80, 160 (`evaluators/formulas/release_verdict.py`)

Sessions from before the question do not answer it, though the drop may have begun with them: they are those that raised
it, so that the same chance would confirm it (docs/evidence.md).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from collector.config.tree import JudgeMore
from collector.log.port import TRACES, New
from collector.log.state_table import Parts, StateTable
from collector.records.codec import encode
from collector.records.comparison import VersionWindow
from collector.records.more import MoreRecord
from collector.records.second_opinion import (
    AskedOpinion,
    JudgedSession,
    MoreState,
    SecondOpinion,
    contradicts,
)
from collector.records.signal_batch import SignalHeader
from collector.records.standing import AgentLabels
from collector.records.windows import WindowEntry
from collector.watch.settling import digest_of
from collector.watch.windows.incoming import Incoming
from evaluators.formulas.release_verdict import LOOKS, MIN_BASELINE
from evaluators.formulas.second_opinion import opinion_looks

JUDGED = 400
"""Judged sessions of an agent that are remembered: 160 since a question, and more than that before it."""
NEAR, LONG = 0.5, 10
"""Progress towards an alarm from which the judge is asked before it, once it has lasted for so many scores."""
MOST = LOOKS[-1]
"""Sessions about drops in a day, too: what one drop may cost."""
AGAIN = 600.0
"""Seconds after which what is missing is asked for again: sessions are spread unevenly over partitions."""
DAY = 86_400  # seconds


class NearAlarm(NamedTuple):
    """How near an evaluator's scores are to an alarm."""

    evaluator: str
    progress: float
    entered: int  # scores so far
    since: float | None  # log time at which the drop began; None: there is none


class SecondOpinions:
    """Of all agents.

    Args:
        more: How many sessions; None: the judge is asked about none, and answers by those of its sample.
        evaluator: The judged evaluator whose scores are the judge's opinion; None: there is no judge.
        model: The judge's. What another evaluator or model said is forgotten: it ranks with no score of this one.
        settle: Seconds of log time after which a session's score has settled.
        partitions: Of topic `traces`, over which a request is spread.
    """

    def __init__(
        self,
        more: JudgeMore | None = None,
        evaluator: str | None = None,
        *,
        model: str = "",
        settle: float = 0.0,
        partitions: int = 1,
    ) -> None:
        self.evaluator = evaluator
        self._judge = f"{evaluator} by {model}"
        self._new_version = more and more.new_version
        self._drop = more and more.drop
        self._settle = settle
        self._partitions = partitions
        self._states: dict[AgentLabels, MoreState] = {}
        self._judged: dict[AgentLabels, dict[int, JudgedSession]] = {}
        self.requests: list[MoreRecord] = []
        """What is not written yet."""
        self._writing = 0
        self._looked = 0.0
        self.table: StateTable[AgentLabels, MoreState] = StateTable(
            "more", tuple[str, str], MoreState, encode=self._encode, restore=self._restore
        )

    def take(
        self, agent: AgentLabels, seen: Incoming, header: SignalHeader, *, is_new: bool
    ) -> None:
        """Take in a signal of `evaluator`; `is_new`: it was not taken in before a restart."""
        if not header.final:
            return
        if header.score is not None:
            least = 0.5 if header.threshold is None else header.threshold
            again = None if header.again is None else (header.score >= least, header.again >= least)
            session = digest_of(seen.session)
            self._put(
                agent, JudgedSession(session, seen.arrived, header.score, seen.version, again)
            )
        elif is_new and header.first and header.sample == "more" and header.outcome in _UNANSWERED:
            asked = self._states.get(agent, MoreState()).opinion
            if asked is not None:
                asked.unanswered += 1
                asked.budget += header.reason == "budget"
                self.table.change(agent)

    def _put(self, agent: AgentLabels, judged: JudgedSession) -> None:
        held = self._judged.setdefault(agent, {})
        earlier = held.pop(judged.session, None)
        held[judged.session] = judged if earlier is None or judged.time >= earlier.time else earlier
        if len(held) > JUDGED:
            del held[min(held, key=lambda each: (held[each].time, each))]
        self.table.change(agent)

    def look_at(
        self,
        alarms: Callable[[], Mapping[AgentLabels, Sequence[NearAlarm]]],
        versions: Callable[[], Mapping[AgentLabels, frozenset[str]]],
        now: float,
    ) -> None:
        """Look at all agents, once in a second of log time; `versions`: of each, that have not ended."""
        if self.evaluator is not None and now >= self._looked + 1:
            self._looked, near = now, alarms()
            for agent, each in versions().items():
                self.look(agent, each, near.get(agent, ()), now)

    def look(
        self, agent: AgentLabels, versions: Iterable[str], alarms: Sequence[NearAlarm], now: float
    ) -> None:
        """Ask what is to be asked at log time `now`, and look at the answers.

        `versions`: of the agent, that have not ended. `alarms`: of each evaluator that may raise one.
        """
        held = self._states.get(agent, MoreState())
        state = replace(held, opinion=held.opinion and replace(held.opinion))
        asking = _Asking(agent, state, self._judged.get(agent, {}), now, self._partitions)
        if self._new_version:
            asking.about_versions({*versions}, self._new_version)
        asking.about_drop(alarms, self._drop or 0, now - self._settle)
        self.requests += asking.requests
        if state != held:
            self._states[agent] = state
            self.table.change(agent)

    def pending(self) -> list[New]:
        """What is to be written into every partition of `traces`, before the table; twice changes nothing."""
        self._writing = len(self.requests)
        return [
            New(topic=TRACES, key=b"", value=encode(each), partition=partition)
            for each in self.requests
            for partition in range(self._partitions)
        ]

    def written(self) -> None:
        del self.requests[: self._writing]

    def shown(self) -> dict[AgentLabels, SecondOpinion]:
        """Of each agent about whose drop the judge is asked."""
        found: dict[AgentLabels, SecondOpinion] = {}
        for agent, state in sorted(self._states.items()):
            asked = state.opinion
            if asked is None or self.evaluator is None:
                continue
            sessions = self._judged.get(agent, {}).values()
            judged = sum(each.time > asked.asked for each in sessions)
            found[agent] = SecondOpinion(
                verdict=asked.verdict,
                evaluator=self.evaluator,
                before=fmean(asked.before) if asked.before else None,
                after=asked.after,
                sessions=asked.looks[-1].sessions if asked.looks else 0,
                judged=judged,
                wanted=asked.wanted,
                unanswered=asked.unanswered,
                budget=asked.budget,
                samples_before=len(asked.before),
                contradicts=contradicts(sessions),
            )
        return found

    def by_version(self, agent: AgentLabels, name: str) -> dict[str, VersionWindow]:
        """The judged sessions of each version of the agent, where `name` is the judge's evaluator."""
        found: dict[str, list[WindowEntry]] = {}
        for each in self._judged.get(agent, {}).values() if name == self.evaluator else ():
            entry = WindowEntry(
                f"{each.session:016x}", each.time, 0, True, "", each.score, version=each.version
            )
            found.setdefault(each.version, []).append(entry)
        return {version: VersionWindow(entries) for version, entries in found.items()}

    def forget(self, holds: Callable[[AgentLabels], bool]) -> None:
        """Forget agents that have no label values any more."""
        for agent in [each for each in {**self._judged, **self._states} if not holds(each)]:
            self._judged.pop(agent, None)
            self._states.pop(agent, None)
            self.table.forget(agent)

    def _encode(self, agent: AgentLabels) -> MoreState | None:
        state = self._states.get(agent)
        judged = tuple(self._judged.get(agent, {}).values())
        if state is None and not judged:
            return None
        return replace(state or MoreState(), judged=judged, judge=self._judge)

    def _restore(self, agent: AgentLabels, state: MoreState, _parts: Parts) -> None:
        if state.judge != self._judge and self.evaluator is not None:
            state = replace(state, opinion=None, judged=())
        self._judged[agent] = {each.session: each for each in state.judged}
        self._states[agent] = replace(state, judged=())


_UNANSWERED = frozenset({"failed", "skipped"})


@dataclass
class _Asking:
    """One look at one agent, whose state it changes."""

    agent: AgentLabels
    state: MoreState
    held: Mapping[int, JudgedSession]
    now: float
    partitions: int
    requests: list[MoreRecord] = field(default_factory=list[MoreRecord])

    @cached_property
    def judged(self) -> Sequence[JudgedSession]:
        """In order of time: of most agents no look needs them."""
        return sorted(self.held.values(), key=lambda each: (each.time, each.session))

    def about_versions(self, versions: set[str], least: int) -> None:
        """Of a version that is new, and of those beside it, `least` sessions are to be judged in all."""
        if versions - {*self.state.versions}:
            counts = Counter(each.version for each in self.judged)
            for version in sorted(versions):
                if (missing := least - counts[version]) > 0:
                    self._request(missing, version)
        self.state.versions = tuple(sorted(versions))

    def about_drop(self, alarms: Sequence[NearAlarm], drop: int, settled_by: float) -> None:
        """`drop`: sessions that are asked for; 0: none. `settled_by`: log time up to which scores have settled."""
        since = self._drop_since(alarms)
        stands = any(each.since is not None for each in alarms)
        if (asked := self.state.opinion) and stands and not asked.stands:
            asked.stands = True
            if asked.verdict == "not_confirmed":
                self._stop(asked)  # it says nothing of what has come since the drop was raised
        if since is None:
            if asked := self.state.opinion:
                self._stop(asked)
        elif (asked := self.state.opinion) is None:
            self._begin(since, drop, stands=stands)
        elif asked.verdict == "undecided":
            self._go_on(asked, drop, settled_by)

    def _drop_since(self, alarms: Sequence[NearAlarm]) -> float | None:
        held = self.state.near
        near = self.state.near = {
            each.evaluator: held.get(each.evaluator, (each.entered, self.now))
            for each in alarms
            if each.progress >= NEAR
        }
        drops = [each.since for each in alarms if each.since is not None]
        lasting = [
            near[each.evaluator][1]
            for each in alarms
            if each.evaluator in near and each.entered - near[each.evaluator][0] >= LONG
        ]
        return min(drops or lasting, default=None)

    def _begin(self, since: float, drop: int, *, stands: bool) -> None:
        before = tuple(sorted(each.score for each in self.judged if each.time < since))
        is_able = len(before) >= MIN_BASELINE and not contradicts(self.judged)
        if wanted := self._allowed(drop) if is_able else 0:
            self._request(wanted)
        self.state.opinion = AskedOpinion(
            asked=self.now, before=before, wanted=wanted, requested=self.now, stands=stands
        )

    def _go_on(self, asked: AskedOpinion, drop: int, settled_by: float) -> None:
        if contradicts(self.judged):
            self._give_back(asked)
            asked.wanted -= max(0, self._missing(asked))
            return
        settled = [each.score for each in self._answers(asked) if each.time <= settled_by]
        looks = opinion_looks(settled, asked.before, taken=asked.looks)
        if len(looks) > len(asked.looks):
            asked.looks = looks
            asked.after = fmean(settled[: looks[-1].sessions])
        missing = self._missing(asked)
        if asked.verdict != "undecided":
            self._give_back(asked)
        elif drop and len(settled) + asked.unanswered >= asked.wanted:
            if further := self._allowed(min(asked.wanted, MOST - asked.wanted)):
                asked.wanted += further
                asked.requested = self.now
                self._request(further + missing)
        elif missing > 0 and self.now - asked.requested >= AGAIN:
            asked.requested = self.now
            self._request(missing)

    def _stop(self, asked: AskedOpinion) -> None:
        if asked.verdict == "undecided":
            self._give_back(asked)
        self.state.opinion = None

    def _answers(self, asked: AskedOpinion) -> list[JudgedSession]:
        return [each for each in self.judged if each.time > asked.asked]

    def _missing(self, asked: AskedOpinion) -> int:
        return asked.wanted - len(self._answers(asked)) - asked.unanswered

    def _give_back(self, asked: AskedOpinion) -> None:
        """What is still missing is wanted no longer."""
        if (missing := self._missing(asked)) > 0:
            self._request(0)
            self.state.asked_today = max(0, self.state.asked_today - missing)

    def _allowed(self, sessions: int) -> int:
        """As many of these as the day has left."""
        state, day = self.state, int(self.now // DAY)
        today = state.asked_today if day == state.day else 0
        allowed = max(0, min(sessions, MOST - today))
        state.day, state.asked_today = day, today + allowed
        return allowed

    def _request(self, sessions: int, version: str | None = None) -> None:
        self.state.number += 1
        service, agent = self.agent
        each = ceil(max(0, sessions) / self.partitions)
        record = MoreRecord(
            service=service,
            agent=agent,
            version=version,
            number=self.state.number,
            sessions=each,
        )
        self.requests.append(record)
