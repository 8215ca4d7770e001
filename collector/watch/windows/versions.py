"""Which versions of an agent are current. Pure.

A version ends once another version has had sessions for `windows.agent.version_silence` (log time) and the first had
none in it. It is current again with its next session, which is what a rollback needs. Versions that take turns within
that time are all current, and an agent that is idle keeps the versions that it has.

    v1  x x x x x
    v2            x x x x x x       two sessions of v2, `silence` apart, both after v1's last one: v1 has ended
                  |<-silence->|
"""

from collections.abc import Callable

from collector.log.state_table import Parts, StateTable
from collector.records.standing import AgentLabels

VersionTimes = dict[str, tuple[float, ...]]
"""By version, log times: the newest one, and those that decide which other versions have ended."""
MAX_VERSIONS = 8  # versions of an agent that can be current: the newest so many
MOMENTS = 60
"""Moments that are distinguished in one `silence`: a version ends at most one moment early."""


class AgentVersions:
    """The versions of one agent. The state depends on the set of (version, time) seen, never on their order."""

    def __init__(self, silence: float) -> None:
        """`silence` is in seconds of log time, above 0."""
        self._moment = silence / MOMENTS
        self._seen: dict[str, frozenset[int]] = {}
        """By version, the moments in which it had sessions: the newest, those within `silence` of it, one before."""
        self._current: frozenset[str] | None = None

    def see(self, version: str, time: float) -> bool:
        """The version had a session at log time `time`; whether that changed anything."""
        held = self._seen.get(version, frozenset[int]())
        moment = int(time / self._moment)
        if moment in held or (moments := _needed(held | {moment})) == held:
            return False
        self._seen[version] = moments
        self._current = None
        if len(self._seen) > MAX_VERSIONS:
            oldest = min(self._seen, key=lambda each: (max(self._seen[each]), each))
            del self._seen[oldest]
            return oldest != version
        return True

    @property
    def current(self) -> frozenset[str]:
        """The versions that have not ended."""
        if self._current is None:
            decided = max(map(_decides, self._seen.values()), default=0)
            self._current = frozenset(v for v, each in self._seen.items() if max(each) >= decided)
        return self._current

    def seen(self) -> VersionTimes:
        """For the record: by version, times that give the same state when they are seen again."""
        return {
            version: tuple((each + 0.5) * self._moment for each in sorted(moments))
            for version, moments in self._seen.items()
        }


def _decides(moments: frozenset[int]) -> int:
    """The moment that ends each other version without a session since: the newest that `silence` follows."""
    end = max(moments) - MOMENTS
    return max((each for each in moments if each <= end), default=0)


def _needed(moments: frozenset[int]) -> frozenset[int]:
    """Without those before the moment that decides: it never becomes an earlier one."""
    first = _decides(moments)
    return frozenset(each for each in moments if each >= first)


class VersionsOfAgents:
    def __init__(self, silence: float, holds: Callable[[AgentLabels, float], bool]) -> None:
        """`holds`: whether an agent has label values of its own, where it was last seen at a log time."""
        self.table: StateTable[AgentLabels, VersionTimes] = StateTable(
            "versions", tuple[str, str], VersionTimes, encode=self._encode, restore=self._restore
        )
        self._holds = holds
        self._silence = silence
        self._agents: dict[AgentLabels, AgentVersions] = {}

    def see(self, agent: AgentLabels, version: str, time: float) -> None:
        """A version of the agent had a session at log time `time`."""
        versions = self._agents.get(agent)
        if versions is None:
            versions = self._agents[agent] = AgentVersions(self._silence)
        if versions.see(version, time):
            self.table.change(agent)

    def current(self, agent: AgentLabels) -> frozenset[str] | None:
        """The agent's versions that have not ended; None: no session of it was seen, as where agents share labels."""
        versions = self._agents.get(agent)
        return None if versions is None else versions.current

    def all_current(self) -> dict[AgentLabels, frozenset[str]]:
        return {agent: each.current for agent, each in self._agents.items()}

    def forget(self, agent: AgentLabels) -> None:
        self._agents.pop(agent, None)
        self.table.change(agent)

    def _encode(self, agent: AgentLabels) -> VersionTimes | None:
        versions = self._agents.get(agent)
        return None if versions is None else versions.seen()

    def _restore(self, agent: AgentLabels, seen: VersionTimes, _parts: Parts) -> None:
        """What changed since is written again; versions of an agent without a slot are removed."""
        newest = max((time for each in seen.values() for time in each), default=0.0)
        if not self._holds(agent, newest):
            self.forget(agent)
            return
        for version, times in seen.items():
            for time in times:
                self.see(agent, version, time)
