"""What a successful session costs: the cost of all sessions, over those that passed `agent_reliability`. Pure.

The newest sessions of each agent: the log has their costs in signals, which are read once, so they are kept in topic
`windows`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from collector.log.state_table import Parts, StateTable
from collector.records.signal_batch import SignalGroup
from collector.records.standing import AgentLabels
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.target import Labels

COST = "cost"
SUCCESS = "agent_reliability"


class _Total(msgspec.Struct):
    total: float


class _CostSignal(msgspec.Struct):
    metadata: _Total


_cost = msgspec.json.Decoder(_CostSignal)


class SessionCost(NamedTuple):
    usd: float | None = None
    success: bool | None = None


class SessionCosts:
    def __init__(self, sessions: int) -> None:
        """`sessions`: of an agent, the newest that are held."""
        self._most = sessions
        self._agents: dict[AgentLabels, OrderedDict[str, SessionCost]] = {}
        self.table: StateTable[AgentLabels, dict[str, SessionCost]] = StateTable(
            "costs",
            tuple[str, str],
            dict[str, SessionCost],
            encode=self._agents.get,
            restore=self._restore,
        )

    def take(self, labels: AgentLabels, seen: Incoming, group: SignalGroup) -> None:
        """The signals of a session; a later revision takes the place of an earlier one."""
        usd = success = None
        at = 0
        for header in group.headers:
            if header.evaluator == COST and header.outcome == "measured":
                usd = _total(bytes(group.lines[at : at + header.size]))
            elif header.evaluator == SUCCESS:
                success = header.success
            at += header.size + 1
        if usd is None and success is None:
            return
        held = self._agents.setdefault(labels, OrderedDict())
        session = seen.session_in(Labels(*labels, SUCCESS, "session"))
        old = held.pop(session, SessionCost())
        held[session] = SessionCost(
            old.usd if usd is None else usd, old.success if success is None else success
        )
        if len(held) > self._most:
            held.popitem(last=False)
        self.table.changed[labels] = None

    def forget(self, holds: Callable[[AgentLabels], bool]) -> None:
        """`holds`: whether labels are still of the same agent."""
        for labels in [each for each in self._agents if not holds(each)]:
            del self._agents[labels]
            self.table.forget(labels)

    def per_success(
        self, holds: Callable[[AgentLabels], bool]
    ) -> Iterator[tuple[AgentLabels, float]]:
        """US dollars by agent that `holds`, where a session passed."""
        for labels, held in self._agents.items():
            if not holds(labels):
                continue
            known = [each for each in held.values() if None not in each]
            passed = sum(each.success is True for each in known)
            if passed:
                yield labels, sum(each.usd or 0.0 for each in known) / passed

    def _restore(
        self, labels: AgentLabels, sessions: dict[str, SessionCost], _parts: Parts
    ) -> None:
        self._agents[labels] = OrderedDict(sessions)


def _total(json: bytes) -> float | None:
    try:
        total = _cost.decode(json).metadata.total
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return total if total >= 0 else None
