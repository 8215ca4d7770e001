"""The commits of all groups: which records every group is done with, and which groups are behind."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from collector.log.port import SPANS, Commit


class Committed(NamedTuple):
    """A group's commit on one partition; None: none yet. Stored as an array: fields are added at the end."""

    offset: int | None = None
    metadata: int | None = None


class CommitKey(NamedTuple):
    """Which group's commit, on which partition."""

    group: str
    topic: str
    partition: int


def advanced(old: Committed, commit: Commit) -> Committed:
    """The group's commit after this one: neither offset nor metadata go back."""
    if old.offset is not None and commit.offset < old.offset:
        return old
    if commit.metadata is None:
        return Committed(commit.offset, old.metadata)
    return Committed(commit.offset, max(commit.metadata, old.metadata or 0))


class Commits:
    """The commits of all groups. `groups` names, by topic, those that hold records.

    Of a topic that `groups` does not name, no record counts as passed. A group that is not named may read and commit;
    no record is kept for it.
    """

    def __init__(
        self,
        groups: Mapping[str, frozenset[str]],
        table: Mapping[CommitKey, Committed] | None = None,
    ) -> None:
        self._groups = dict(groups)
        self._table = dict(table or {})

    def copy(self) -> Commits:
        return Commits(self._groups, self._table)

    def join(self, group: str, topic: str) -> None:
        self._groups[topic] = self._groups.get(topic, frozenset()) | {group}

    def of(self, group: str, topic: str, partition: int) -> Committed:
        return self._table.get(CommitKey(group, topic, partition), Committed())

    def advance(self, commit: Commit) -> tuple[CommitKey, Committed] | None:
        """Apply a commit; returns what changed, None when it would go backwards or repeats the old one."""
        key = CommitKey(commit.group, commit.topic, commit.partition)
        old = self._table.get(key, Committed())
        new = advanced(old, commit)
        if new == old:
            return None
        self._table[key] = new
        return key, new

    def passed(self, topic: str, partition: int) -> int:
        groups = self._groups.get(topic)
        if groups is None:
            return 0
        offsets = (self.of(group, topic, partition).offset or 0 for group in groups)
        return min(offsets, default=sys.maxsize)

    def marked(self, partition: int) -> int:
        """Below this offset of `closings` no group needs a mark any more (docs/decisions/003)."""
        groups = self._groups.get(SPANS)
        if groups is None:
            return 0
        marks = (self.of(group, SPANS, partition).metadata or 0 for group in groups)
        return min(marks, default=sys.maxsize)

    def behind(self, topic: str, partition: int, offset: int) -> tuple[str, ...]:
        """The holding groups that have not committed past this record."""
        groups = self._groups.get(topic, frozenset())
        return tuple(g for g in groups if (self.of(g, topic, partition).offset or 0) <= offset)
