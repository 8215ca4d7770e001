"""The fault watches of one agent: what a session used enters when the trace closes in which it did. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, get_args

from collector.base.slots import Slots
from collector.base.telemetry import OTHER, short
from collector.records.standing import (
    FAULTS_THAT_PAGE,
    LOOKED_AT,
    AgentLabels,
    FailingTool,
    Fault,
    LookedAt,
    VersionCount,
)
from collector.records.windows import AgentFaultsState, SettlingUses, VersionUses, WatchState
from collector.watch.comparisons import Comparison
from collector.watch.entered import Entered, LatelyUsed
from collector.watch.faults.servers import by_server, no_longer, server_of
from collector.watch.settling import Settling, digest_of
from evaluators.formulas.durations import Durations
from evaluators.formulas.fault_watch import (
    EXPLAINS,
    Cause,
    EarlierUse,
    FaultKind,
    FaultState,
    FaultWatch,
)
from evaluators.uses import ToolUse

MAX_TOOLS = 32  # tools of an agent with watches of their own: those that are used most lately
MAX_SETTLING = 4800
"""Turns of an agent that may wait to enter at the same time, each counted as 2 and its tools: 0.7 MB at most."""
ENDED_SHOWN = 3600.0  # seconds for which the gauge of a fault that is over says 0, so that an alert ends at once
TOLD = 30.0
"""Seconds after its first failure from which a fault may have been told: notices wait for 45, and look now and then."""
ERRORS = 16  # newest failures whose class of error is remembered
SESSIONS = 8
"""Newest failed sessions among which the worst are named: of every watch together at most 280 kB of the state."""
OF_AGENT: tuple[FaultKind, ...] = (
    "model_failed",
    "no_answer",
    "gave_up",
    "answer_cut",
    "answer_blocked",
    "cancelled",
)
"""Fields of `SessionUses`: None where the turn does not tell."""
SEEN = 10  # uses of a tool from which on it is said that it always fails
MAX_VERSIONS = 8
"""Versions of which a watch counts sessions, those used last: as many as have gauges; 30 bytes each."""
MOSTLY = 0.5  # the share of them that failed
_MARKUP = re.compile(r"[^\w .:/@+-]")
"""What has no place in a tool's name, which is in alerts: they are shown as HTML and as Markdown."""
_ORDER = {fault: place for place, fault in enumerate(get_args(FaultKind))}


class AgentFaults(Comparison):
    """One agent's watches, by fault and tool."""

    ENTERED = 0

    def __init__(
        self,
        labels: AgentLabels,
        settle: float,
        state: AgentFaultsState | None = None,
        entered: bytes = b"",
    ) -> None:
        """`settle`: seconds after which a session that goes on enters a watch again. The rest as it was stored.

        Raises ValueError: it was not.
        """
        state = state or AgentFaultsState()
        self.labels = labels
        self.settling: Settling[SettlingUses] = Settling(
            state.settling,
            state.next_offsets,
            Entered(state.entered, state.newest, entered),
            most=MAX_SETTLING,
        )
        self.watches_dropped = 0
        """Watches of tools that gave way to one that is used more, since this was read."""
        self._lately = LatelyUsed(settle, state.lately)
        self._tools: Slots[str] = Slots(MAX_TOOLS)
        self._tools.restore(state.tools)
        self._durations = {tool: Durations(*each) for tool, each in state.durations.items()}
        self._servers = dict(state.servers)
        self.told_as = state.told_as
        """As it is stored: a tool whose fault was told before it became its server's is not told again as that."""
        self._watches: dict[Cause, _StoredWatch] = {
            (each.fault, each.tool): _StoredWatch(each) for each in state.watches
        }

    @property
    def size(self) -> int:
        return len(self._watches)

    def entering(self, passed: float) -> Iterator[None]:
        """Let the turns enter that closed before log time `passed`, one with each step."""
        for each in self.settling.entering(passed):
            self._enter(each)
            yield

    def expire(self, now: float) -> bool:
        """End faults that are the new normal at log time `now`, and forget those that ended long ago."""
        changed = [each.expire(now) for each in self._watches.values()]
        if any(changed):
            self._tell(now)
        return any(changed)

    def faults(self) -> Iterator[Fault]:
        """What is shown, in order of fault and tool; tools of a server that fail together are one fault."""
        return by_server(self._shown(), self._server_of)

    @property
    def since(self) -> float | None:
        """When the oldest fault began that is shown; None: there is none."""
        return min((each.since for each in self.faults()), default=None)

    def _server_of(self, tool: str) -> str | None:
        return self._servers.get(tool) or server_of(tool)

    def _shown(self) -> list[Fault]:
        shown = (watch.shown() for _, watch in self._in_order())
        return [each for each in shown if each is not None]

    def failing_always(self) -> Iterator[FailingTool]:
        """Tools that fail in most of their uses and always did: they do not fail more than before."""
        for (fault, tool), watch in self._in_order():
            uses, failures = watch.watch.learned
            is_most = uses >= SEEN and failures >= MOSTLY * uses
            if fault == "tool_failed" and is_most and not watch.is_raised:
                yield FailingTool(tool=tool, uses=round(uses), failures=round(failures))

    def by_version(self) -> Iterator[VersionCount]:
        """Sessions of each version that used what is watched, of faults that page."""
        for (fault, tool), watch in self._in_order():
            for version, found in sorted(watch.record.versions.items()):
                yield VersionCount(version, fault, tool, found.counted)

    def ended(self) -> Iterator[Cause]:
        """(fault, tool) of what was over within the last hour, or is part of another fault now."""
        ended = {key: each.record.ended_since for key, each in self._in_order() if each.is_ended}
        ended_since = [(*key, since) for key, since in ended.items()]
        over = [*ended, *no_longer(self._shown(), ended_since, self._server_of)]
        told = {("tool_failed", tool) for tool in self.told_as.values()}
        yield from (each for each in over if each not in told)

    def cause(self, since: float) -> Cause | None:
        """(fault, tool) of the watch whose failures since then explain best that scores dropped at log time `since`.

        None: none does.

        A fault that pages explains before one that may follow from it: an agent gives up because a tool fails.
        """
        explaining = [
            (key[0] in FAULTS_THAT_PAGE, evidence, key)
            for key, each in self._in_order()
            if (evidence := each.watch.evidence(since)) >= EXPLAINS or (evidence and each.is_raised)
        ]
        *_, found = max(explaining, key=lambda each: each[:2], default=(None,))
        # Where the server is what fails, it is named and not its tool.
        servers = {tool: each.tool for each in self.faults() for tool in each.tools}
        if found is None or found[0] != "tool_failed" or found[1] not in servers:
            return found
        return "server_failed", servers[found[1]]

    def looked_at(self, since: float) -> LookedAt | None:
        """Of the watches without enough uses since then, the one with the most failures; None: all have enough."""
        used = [(*each.watch.used_since(since), key[1]) for key, each in self._in_order()]
        few = [(failures, -uses, tool) for uses, failures, tool in used if uses < LOOKED_AT]
        if not few:
            return None
        _, uses, tool = max(few, key=lambda each: each[:2])
        return LookedAt(tool=tool, uses=-uses)

    def is_over(self, fault: FaultKind, tool: str, alarm: float) -> bool:
        """Whether a fault that had begun by log time `alarm` is over."""
        if fault == "server_failed":
            of = [
                each
                for (kind, name), each in self._watches.items()
                if kind == "tool_failed" and self._server_of(name) == tool
            ]
        else:
            of = [each for key, each in self._watches.items() if key == (fault, tool)]
        is_raised = any(each.is_raised for each in of)
        return not is_raised and any(
            each.record.ended > alarm >= each.record.ended_since for each in of
        )

    def state(self) -> AgentFaultsState:
        """What is stored of it, as it must be written before the part that is `due`."""
        entered = self.settling.entered
        return AgentFaultsState(
            watches=tuple(each.stored() for each in self._watches.values()),
            durations={
                tool: (each.counts, tuple(each.waiting)) for tool, each in self._durations.items()
            },
            tools=self._tools.state(),
            servers=self._servers,
            told_as=self.told_as,
            settling=self.settling.held,
            next_offsets=self.settling.next_offsets,
            entered=entered.count,
            newest=entered.newest,
            lately=self._lately.packed,
        )

    def _in_order(self) -> list[tuple[Cause, _StoredWatch]]:
        return sorted(self._watches.items(), key=lambda each: (_ORDER[each[0][0]], each[0][1]))

    def _enter(self, turn: SettlingUses) -> None:
        uses = turn.uses
        tools: dict[str, ToolUse] = {}
        for use in uses.tools:
            label = self._label(use.tool, turn.due)
            if use.server and label != OTHER:
                self._servers[label] = _plain(use.server)
            tools[label] = _both(tools[label], use) if label in tools else use
        for tool, use in tools.items():
            self._feed("tool_failed", tool, turn, failed=use.failed, error=use.error)
            if use.returned:
                self._feed("tool_empty", tool, turn, failed=use.empty)
            self._feed("repeated_calls", tool, turn, failed=use.repeated)
            if use.slowest >= 0:
                self._feed_duration(tool, use.slowest, turn)
        for fault in OF_AGENT:
            if (failed := getattr(uses, fault)) is not None:
                self._feed(fault, "", turn, failed=failed)

    def _feed(
        self, fault: FaultKind, tool: str, turn: SettlingUses, *, failed: bool, error: str = ""
    ) -> None:
        watch = self._watch(fault, tool)
        key = digest_of(f"{turn.session}\0{fault}\0{tool}")
        earlier = self._lately.get(key)
        if self._lately.enters(key, turn, failed=failed):
            was_raised = watch.is_raised
            watch.feed(turn, failed=failed, error=error, earlier=earlier)
            if watch.is_raised != was_raised:
                self._tell(turn.due)

    def _tell(self, now: float) -> None:
        """Whose alert tells of each server, decided once, when its tools begin to fail together."""
        told: dict[str, str] = {}
        for server in self.faults():
            if server.fault != "server_failed":
                continue
            alarms = [
                (found.since, tool)
                for tool in server.tools
                if (found := self._watches["tool_failed", tool].watch.state.fault) is not None
                and found.began < now
                and found.since <= now - TOLD
            ]
            _, first = min(alarms, default=(0.0, ""))
            told[server.tool] = self.told_as.get(server.tool, first)
        self.told_as = told

    def _feed_duration(self, tool: str, seconds: float, turn: SettlingUses) -> None:
        durations = self._durations.setdefault(tool, Durations())
        is_slow = durations.is_slow(seconds)
        watch = self._watch("tool_slow", tool)
        if is_slow is not None:
            self._feed("tool_slow", tool, turn, failed=is_slow)
        # As the watch learns whether calls are slow, so it learns how long they take.
        durations.wait(seconds)
        if watch.is_raised:
            durations.skip()
        elif watch.watch.is_quiet:
            durations.learn()

    def _watch(self, fault: FaultKind, tool: str) -> _StoredWatch:
        watch = self._watches.get((fault, tool))
        if watch is None:
            watch = _StoredWatch(WatchState(fault, tool, FaultState()))
            self._watches[fault, tool] = watch
        return watch

    def _label(self, tool: str, now: float) -> str:
        """The tool's name as a label, or `_other`; a tool that is used more may take the watches of another."""
        tool = _plain(tool)
        if not tool or tool == OTHER:
            return OTHER
        loser = self._tools.count(tool, now)
        if loser is not None:
            self._durations.pop(loser, None)
            self._servers.pop(loser, None)
            for key in [each for each in self._watches if each[1] == loser]:
                del self._watches[key]
                self.watches_dropped += 1
        return tool if tool in self._tools else OTHER


class _StoredWatch:
    """A watch with what its text needs."""

    __slots__ = ("record", "watch")

    def __init__(self, record: WatchState) -> None:
        self.record = record
        self.watch = FaultWatch(record.state, of_people=record.fault == "cancelled")

    def stored(self) -> WatchState:
        self.record.state = self.watch.state
        return self.record

    @property
    def is_raised(self) -> bool:
        return self.watch.state.fault is not None

    @property
    def is_ended(self) -> bool:
        return self.record.ended > 0 and not self.is_raised

    def feed(
        self, turn: SettlingUses, *, failed: bool, error: str, earlier: EarlierUse | None
    ) -> None:
        record, watch = self.record, self.watch
        raised = watch.state.fault
        watch.feed(failed, turn.seen, turn.due, earlier)
        if record.fault in FAULTS_THAT_PAGE:
            of_version = record.versions.pop(turn.version, None) or VersionUses()
            record.versions[turn.version] = of_version
            of_version.count(failed, earlier)
            if len(record.versions) > MAX_VERSIONS:
                del record.versions[next(iter(record.versions))]
        if raised is not None and watch.state.fault is None:
            record.ended, record.ended_since = turn.due, raised.since
        if not failed:
            if (record.sessions or record.errors) and watch.is_quiet:
                record.errors, record.sessions = [], []
        elif not watch.is_quiet:
            record.errors = [*record.errors, error][-ERRORS:] if error else record.errors
            if turn.is_named and turn.session not in record.sessions:
                record.sessions = [*record.sessions, turn.session][-SESSIONS:]

    def expire(self, now: float) -> bool:
        raised = self.watch.state.fault
        changed = self.watch.expire(now)
        if changed and raised is not None:
            self.record.ended, self.record.ended_since = now, raised.since
        if self.record.ended and now - self.record.ended >= ENDED_SHOWN:
            self.record.ended, changed = 0.0, True
        return changed

    def shown(self) -> Fault | None:
        shown = self.watch.state.fault
        if shown is None:
            return None
        classes = Counter(self.record.errors).most_common(1)
        return Fault(
            fault=self.record.fault,
            tool=self.record.tool,
            since=shown.since,
            uses=shown.uses,
            failures=shown.failures,
            uses_before=shown.uses_before,
            failures_before=shown.failures_before,
            error=classes[0][0] if classes else None,
            sessions=tuple(reversed(self.record.sessions)),
        )


@lru_cache(maxsize=1024)
def _plain(tool: str) -> str:
    return _MARKUP.sub("_", short(tool))


def _both(one: ToolUse, other: ToolUse) -> ToolUse:
    either: Sequence[Any] = [mine or theirs for mine, theirs in zip(one, other, strict=True)]
    return ToolUse._make(either)._replace(
        calls=one.calls + other.calls, slowest=max(one.slowest, other.slowest)
    )
