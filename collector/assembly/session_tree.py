"""Which session started which, for agents whose helpers have sessions of their own. Pure.

The first link to a session makes it a helper's. Links of two different sessions to it contradict each other: it then
belongs to neither. So its place changes at most twice, in whatever order links come, and however many there are.
"""

DEPTH = 16
"""Links that are followed, up or down: a helper below this many others belongs to the session so far above it."""


class SessionTree:
    """The links between the sessions of one owner. Links may form circles."""

    def __init__(self) -> None:
        self._starters: dict[bytes, set[bytes]] = {}
        """By helper's session: the sessions that say they started it."""
        self._helpers: dict[bytes, set[bytes]] = {}  # by session: the helpers that it alone started

    def link(self, helper: bytes, session: bytes) -> bool:
        """`session` says that it started `helper`; returns whether that changes where `helper` belongs."""
        starters = self._starters.get(helper, set[bytes]())
        if helper == session or session in starters:
            return False
        self._leave(helper)
        self._starters[helper] = starters
        starters.add(session)
        self._join(helper)
        return len(starters) <= 2

    def unlink(self, helper: bytes, session: bytes) -> None:
        """What `link` was called with is not remembered any more."""
        starters = self._starters.get(helper)
        if starters is None or session not in starters:
            return
        self._leave(helper)
        starters.discard(session)
        if starters:
            self._join(helper)
        else:
            del self._starters[helper]

    def outermost(self, session: bytes) -> bytes:
        """The session that started all that led to this one; of several that started each other, the least."""
        way = {session: 0}
        while len(way) <= DEPTH:
            starter = self._starter(session)
            if starter is None:
                return session
            if starter in way:
                circle = [each for each, step in way.items() if step >= way[starter]]
                return min(circle)
            way[starter] = len(way)
            session = starter
        return session

    def within(self, session: bytes) -> list[bytes]:
        found = {session: None}
        level = [session]
        for _ in range(DEPTH):
            below = (each for one in level for each in sorted(self._helpers.get(one, ())))
            level = [each for each in dict.fromkeys(below) if each not in found]
            if not level:
                break
            found.update(dict.fromkeys(level))
        return [*found]

    def _starter(self, helper: bytes) -> bytes | None:
        starters = self._starters.get(helper, ())
        return next(iter(starters)) if len(starters) == 1 else None

    def _join(self, helper: bytes) -> None:
        starter = self._starter(helper)
        if starter is not None:
            self._helpers.setdefault(starter, set()).add(helper)

    def _leave(self, helper: bytes) -> None:
        starter = self._starter(helper)
        if starter is None:
            return
        helpers = self._helpers[starter]
        helpers.discard(helper)
        if not helpers:
            del self._helpers[starter]
