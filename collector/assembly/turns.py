"""Which made trace each segment belongs to. Pure.

An agent that speaks in logs has no trace of its own for a turn (one prompt of a person). What places a segment is said
by other segments, which may come later, in any order:

    segment names a turn, which is a person's                          -> that turn
    segment has spans of a trace that turns own                        -> of these the last whose prompt is before it
    its session (of a helper's, the outermost) has prompts before it   -> the last of them
    else                                                               -> what it would be alone

What is known grows only while segments arrive, so the answer depends on the set of segments and not on their order, as
long as none of their traces has closed. A trace that has closed leaves its facts with its mark.
"""

from collector.assembly.owner import Owner
from collector.records.closings import TurnFacts


class Turns:
    def __init__(self) -> None:
        self._owners: dict[bytes, Owner] = {}
        self._of_closed: dict[bytes, bytes] = {}  # owner by closed trace

    def __len__(self) -> int:
        return len(self._owners)

    def owner(self, owner_id: bytes) -> Owner:
        found = self._owners.get(owner_id)
        if found is None:
            found = self._owners[owner_id] = Owner()
        return found

    def remember(self, trace_id: bytes, facts: TurnFacts) -> None:
        self._of_closed[trace_id] = facts.owner
        self.owner(facts.owner).close(trace_id, facts)

    def forget(self, trace_id: bytes) -> None:
        """A closed trace is not remembered any more; nothing where it was not made."""
        owner_id = self._of_closed.pop(trace_id, None)
        if owner_id is None:
            return
        self.owner(owner_id).forget(trace_id)
        self.sweep(owner_id)

    def sweep(self, owner_id: bytes) -> None:
        owner = self._owners.get(owner_id)
        if owner is not None and owner.is_empty:
            del self._owners[owner_id]
