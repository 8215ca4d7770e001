"""Which sessions of one partition are judged beyond `judge.sample`: the next ones that begin. Pure."""

from collections.abc import Iterator

from msgspec.structs import replace

from collector.base.telemetry import short
from collector.records.more import MoreRecord
from collector.records.sessions import SessionHead, more_key
from collector.scoring.effects import Change, Tombstone

MOST = 1_024
"""Requests that are remembered: more than agents and versions with label values of their own ask at a time."""


class MoreSessions:
    def __init__(self) -> None:
        self._wanted: dict[bytes, MoreRecord] = {}

    def restore(self, record: MoreRecord) -> None:
        """What was left of a request, from before a restart."""
        self._wanted[_key(record)] = record

    def take(self, record: MoreRecord) -> Iterator[Change]:
        """A request of publishing; what must be stored. A request that is read again changes nothing."""
        key = _key(record)
        held = self._wanted.get(key)
        if held is not None and record.number <= held.number:
            return
        self._wanted.pop(key, None)
        self._wanted[key] = record
        yield record
        while len(self._wanted) > MOST:
            yield Tombstone(state=self._wanted.pop(next(iter(self._wanted))))

    def begin(
        self, head: SessionHead, *, is_sampled: bool
    ) -> tuple[SessionHead, MoreRecord | None]:
        """A session that begins: its head, and what of a request is left, where that changed.

        `is_sampled`: it is judged anyway, and uses nothing of what is wanted.
        """
        service, agent = short(head.service), short(head.agent)
        for version in (short(head.agent_version or ""), None):
            key = more_key(service, agent, version)
            wanted = self._wanted.get(key)
            if wanted is None or not wanted.sessions:
                continue
            head = replace(head, more=True)
            if is_sampled:
                return head, None
            left = self._wanted[key] = replace(wanted, sessions=wanted.sessions - 1)
            return head, left
        return head, None


def _key(record: MoreRecord) -> bytes:
    return more_key(record.service, record.agent, record.version)
