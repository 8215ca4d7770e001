"""Whatever is changed, forgotten, cut off or read back: each key has its newest state, with parts of its own."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from collector.log.port import WINDOWS, New
from collector.log.state_table import StateTable, read_back
from tests.support.examples import examples
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.state_tables import Refused, state_key

KEYS = ("a", "a\0", "b")


class Life(NamedTuple):
    """A state: of the life that began as the n-th, changed so many times, as far as its parts have come."""

    life: int
    changes: int
    parts: dict[int, int]


class Owner:
    """What a reader keeps; a new one is a new process."""

    lives = 0

    def __init__(self) -> None:
        self.held: dict[str, Life] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        """What was read back."""
        self.table: StateTable[str, Life] = StateTable(
            "life",
            str,
            Life,
            encode=self.held.get,
            restore=self._restore,
            due=self._due,
            stored=self._stored,
        )

    def change(self, key: str) -> None:
        if key not in self.held:
            Owner.lives += 1
            self.held[key] = Life(Owner.lives, 0, {})
        life = self.held[key]
        self.held[key] = life._replace(changes=life.changes + 1)
        self.table.change(key)

    def forget(self, key: str) -> None:
        if self.held.pop(key, None) is not None:
            self.table.forget(key)

    def _restore(self, key: str, state: Life, parts: Mapping[int, bytes]) -> None:
        self.held[key] = state
        self.parts[key] = dict(parts)

    def _due(self, key: str) -> dict[int, bytes]:
        """Two changes of three are due as a part, under one of two names."""
        life = self.held[key]
        return {life.changes % 3: pack(life)} if life.changes % 3 else {}

    def _stored(self, key: str, parts: Mapping[int, bytes]) -> None:
        life = self.held.get(key)
        if life is not None:
            self.held[key] = life._replace(parts={**life.parts, **dict.fromkeys(parts, 1)})


def pack(life: Life) -> bytes:
    return f"{life.life}.{life.changes}".encode()


async def start(log: FaultyLog, crash_at: int | None) -> Owner:
    log.restart(None)
    owner, refused = Owner(), Refused()
    await read_back(log, (owner.table,), refused)
    assert refused.reasons == []
    log.restart(crash_at)
    return owner


def check_parts(owner: Owner) -> None:
    """A part is of its state's own life, and never newer than it."""
    for key, state in owner.held.items():
        for packed in owner.parts.get(key, {}).values():
            life, changes = map(int, packed.split(b"."))
            assert life == state.life, "a part of an earlier life"
            assert changes <= state.changes, "a part that is newer than its state"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from(KEYS)),
        st.tuples(st.just("forget"), st.sampled_from(KEYS)),
        st.tuples(st.sampled_from(["store", "fail", "restart"]), st.just("")),
        st.tuples(st.just("meanwhile"), st.sampled_from(KEYS)),
        st.tuples(st.just("forget meanwhile"), st.sampled_from(KEYS)),
    ),
    max_size=40,
)


ONCE = [("change", "a"), ("store", "")]
TWICE = [("change", "a"), *ONCE]


@given(steps=STEPS, crashes=st.lists(st.integers(1, 6), max_size=4))
@example([*TWICE, ("restart", ""), ("forget", "a"), *ONCE, ("restart", "")], [])
@example([*TWICE, ("forget", "a"), *ONCE, ("restart", "")], [])
@example([("restart", ""), *TWICE], [2])
@example([*ONCE, ("restart", ""), *ONCE], [2])
@example([*TWICE, ("restart", ""), ("forget", "a"), ("store", ""), *ONCE, ("restart", "")], [2])
@settings(deadline=None, max_examples=examples(200))
def test_a_restart_gives_what_was_stored_wherever_a_write_was_cut(
    steps: list[tuple[str, str]], crashes: list[int]
) -> None:
    asyncio.run(_walk(steps, [*crashes]))


async def _walk(steps: list[tuple[str, str]], crashes: list[int]) -> None:
    log = FaultyLog(atomic=False)
    owner = await start(log, None)
    before: dict[str, Life] = {}
    """As it stood when it was stored last."""
    for step, key in steps:
        if step == "change":
            owner.change(key)
        elif step == "forget":
            owner.forget(key)
        elif step == "restart":
            owner = await start(log, crashes.pop(0) if crashes else None)
            assert {k: bare(each) for k, each in owner.held.items()} == before
            check_parts(owner)
        elif step == "fail":
            owner.table.pending()  # the write raises; nothing of it is in the topic
        else:
            records = owner.table.pending()
            now = {each: bare(life) for each, life in owner.held.items()}
            if step == "meanwhile":
                owner.change(key)
            elif step == "forget meanwhile":
                owner.forget(key)
            try:
                await log.write(records)
            except Crash:
                owner = await start(log, crashes.pop(0) if crashes else None)
                found = {each: bare(life) for each, life in owner.held.items()}
                for each in KEYS:
                    assert found.get(each) in (before.get(each), now.get(each))
                check_parts(owner)
                before = found
                continue
            owner.table.written()
            before = now
    log.crash_at = None
    await log.write(owner.table.pending())
    owner.table.written()
    assert owner.table.pending() == []
    again = await start(log, None)
    assert {k: bare(each) for k, each in again.held.items()} == {
        k: bare(each) for k, each in owner.held.items()
    }
    check_parts(again)


def bare(life: Life) -> Life:
    """Without what is known of its parts, which a state learns after it is written."""
    return life._replace(parts={})


def test_what_changed_last_is_restored_last() -> None:
    async def walk() -> list[str]:
        log, owner = FaultyLog(), Owner()
        for key in ("a", "b", "a\0", "b", "a"):
            owner.change(key)
        await log.write(owner.table.pending())
        return list((await start(log, None)).held)

    assert asyncio.run(walk()) == ["a\0", "b", "a"]


def test_a_record_that_cannot_be_read_costs_its_own_key_alone() -> None:
    async def walk() -> tuple[set[str], list[str]]:
        log, owner, refused = FaultyLog(), Owner(), Refused()
        for key in KEYS:
            owner.change(key)
        await log.write(owner.table.pending())
        damaged = (state_key("life", "b"), b"\0life\0\xc1")
        await log.write([New(topic=WINDOWS, key=key, value=b"\xc1") for key in damaged])
        again = Owner()
        await read_back(log, (again.table,), refused)
        return set(again.held), refused.reasons

    held, reasons = asyncio.run(walk())
    assert held == {"a", "a\0"}
    assert len(reasons) == 2
