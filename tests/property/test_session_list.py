"""The list of sessions: its order, its pages, its filters, beside the same said in Python; and what it reads."""

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.query import Query
from collector.api.session_list import (
    EVERY,
    SORTS,
    SessionFilter,
    key_after,
    place_after,
    statement,
)
from collector.api.store import SessionEntry, micros, read_cursor
from collector.base.telemetry import Telemetry
from evaluators.model import Tokens
from tests.support import api_records as make
from tests.support.examples import examples
from tests.support.table import for_each

Fits = Callable[[SessionEntry], object]
KINDS = 120
"""Sessions before any are written while pages are read."""


@dataclass
class Filled:
    index: Index
    query: Query
    count: int = 0

    def add(self, draw: random.Random) -> None:
        """One more session, which may lack any of its numbers; many numbers are equal."""
        self.count += 1
        number = self.count
        of = make.trace(
            number,
            session_id=f"s-{number}",
            service=draw.choice(["shop", "desk"]),
            agent=draw.choice(["clerk", "cook"]),
            agent_version=draw.choice(["1", "2", None]),
            input=draw.choice(["Where is my kettle?", "Wo ist der Käse?", "我的订单在哪里", None]),
            output=draw.choice(["It is here", "tomorrow_morning, at noon", None]),
            status=draw.choice(["ok", "error"]),
            cost_usd=draw.choice([None, 0.5, 2.0]),
            tokens=draw.choice([Tokens(), Tokens(input=5), Tokens(input=1, output=4)]),
            end_time_unix_nano=int((make.START + number + draw.choice([1, 2])) * 1e9),
        )
        seen = make.START + draw.randrange(50)
        records = make.trace_records(make.trace_value(of, seen=seen), first=number)
        self.index.take_traces(records)
        signals = [make.signal(of, "tool_correctness", success=draw.random() < 0.5)]
        for name in ("agent_reliability", "work_baseline"):
            score = draw.choice([None, 0.25, 0.5, 1.0])
            signals.append(make.session_signal(of, name, score))
        self.index.take_signals(make.signal_records(*signals, first=10 * number))

    def all(self, asked: SessionFilter = EVERY, sort: str = "newest") -> list[SessionEntry]:
        return list(self.query.sessions(asked, sort=sort, limit=10_000).items)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Generator[Filled]:
    """Nothing is added to it by tests."""
    yield from fill(tmp_path_factory.mktemp("index"))


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Generator[Filled]:
    """Sessions are added to it; an example may end in the middle of one."""
    yield from fill(tmp_path_factory.mktemp("growing"))


def fill(folder: Path) -> Generator[Filled]:
    index = Index(
        folder,
        size=64 << 20,
        max_traces=100,
        content=True,
        families=ApiFamilies(Telemetry()),
    )
    made = Filled(index, Query(index))
    draw = random.Random(11)
    for _ in range(KINDS):
        made.add(draw)
    yield made
    index.close()


def tokens(each: SessionEntry) -> int:
    known = [n for n in (each.input_tokens, each.output_tokens) if n is not None]
    return sum(known) if known else -1


def or_last(score: float | None) -> float:
    return 2.0 if score is None else score


ORDERS: dict[str, Callable[[SessionEntry], tuple[float, ...]]] = {
    "worst": lambda s: (or_last(s.work), or_last(s.reliability)),
    "newest": lambda s: (-s.last,),
    "reliability": lambda s: (or_last(s.reliability),),
    "cost": lambda s: (-1 if s.cost is None else -s.cost - 2,),
    "tokens": lambda s: (-tokens(s),),
    "length": lambda s: (-(s.seconds or -1),),
}


@pytest.mark.parametrize("sort", SORTS)
def test_each_order_is_what_its_name_says_and_what_is_unknown_comes_last(
    filled: Filled, sort: str
) -> None:
    keys = [ORDERS[sort](each) for each in filled.all(sort=sort)]

    assert keys == sorted(keys)
    assert len(keys) == filled.count


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sort=st.sampled_from([*SORTS]),
    limit=st.integers(1, 40),
    new=st.lists(st.integers(0, 2), max_size=8),
    draw=st.randoms(use_true_random=False),
)
def test_pages_together_are_the_whole_list_while_sessions_come(
    growing: Filled, sort: str, limit: int, new: list[int], draw: random.Random
) -> None:
    before = [each.session_id for each in growing.all(sort=sort)]
    read: list[str] = []
    coming = iter(new)
    cursor: bytes | None = None
    page = growing.query.sessions(sort=sort, limit=1)
    for _ in range(10 * len(before) + 100):
        page = growing.query.sessions(sort=sort, limit=limit, cursor=cursor)
        read += [each.session_id for each in page.items]
        if page.next is None:
            break
        cursor = read_cursor(page.next)
        for _ in range(next(coming, 0)):
            growing.add(draw)

    assert page.next is None
    assert len(read) == len({*read})
    known = {*before}
    assert [each for each in read if each in known] == before


def says(text: str) -> Fits:
    return lambda each: text in (each.question or "").casefold()


FILTERS: list[tuple[SessionFilter, Fits]] = [
    (SessionFilter(service="shop"), lambda s: s.service == "shop"),
    (
        SessionFilter(agent="cook", version="2"),
        lambda s: (s.agent, s.agent_version) == ("cook", "2"),
    ),
    (SessionFilter(since=micros(make.START + 30)), lambda s: s.last >= micros(make.START + 30)),
    (SessionFilter(until=micros(make.START + 30)), lambda s: s.last < micros(make.START + 30)),
    (SessionFilter(least=0.5), lambda s: s.reliability is not None and s.reliability >= 0.5),
    (SessionFilter(most=0.5), lambda s: s.reliability is not None and s.reliability <= 0.5),
    (SessionFilter(status="open"), lambda s: s.closed is None),
    (SessionFilter(status="closed"), lambda s: s.closed is not None),
    (SessionFilter(status="error"), lambda s: s.errors > 0),
    (SessionFilter(status="unscored"), lambda s: s.reliability is None),
    (SessionFilter(failed="tool_correctness"), lambda s: s.failed & 1 or s.failed & 2),
    (SessionFilter(failed="no such evaluator"), lambda _: False),
    (SessionFilter(text="KETTLE"), says("kettle")),
    (SessionFilter(text="kett whe"), says("kettle")),
    (SessionFilter(text="kase"), says("käse")),
    (SessionFilter(text="ett"), lambda _: False),
    (SessionFilter(text="订单"), says("订单")),
    (SessionFilter(text="s-1"), lambda s: s.session_id.startswith("s-1")),
    (SessionFilter(text=f"{7:032X}"), lambda s: s.session_id == "s-7"),
    (SessionFilter(text='"; -- *'), lambda _: False),
    (
        SessionFilter(names=[("shop", "s-3"), ("desk", "s-3"), ("x", "s-4")]),
        lambda s: s.session_id == "s-3",
    ),
    (
        SessionFilter(text="kettle", status="error", service="desk"),
        lambda s: says("kettle")(s) and s.errors and s.service == "desk",
    ),
]


@for_each(("asked", "fits"), FILTERS)
@for_each("sort", ["worst", "newest", "cost"])
def test_a_filter_finds_what_fits_and_nothing_else(
    filled: Filled, asked: SessionFilter, fits: Fits, sort: str
) -> None:
    expected = [each.session_id for each in filled.all(sort=sort) if fits(each)]

    assert [each.session_id for each in filled.all(asked, sort)] == expected


def test_words_of_an_answer_find_its_session(filled: Filled) -> None:
    found = {each.session_id for each in filled.all(SessionFilter(text="tomorrow noon"))}
    expected = {
        each.session_id
        for each in filled.all()
        for shown in filled.query.session(each.session_id)
        if "tomorrow" in (shown.traces[0].entry.header.output or "")
    }

    assert found == expected
    assert found


@for_each("sort", SORTS)
@for_each(
    ("asked", "most"),
    [
        (EVERY, ""),
        (SessionFilter(agent="clerk"), "agent=?"),
        (SessionFilter(service="shop", status="error"), "agent=?"),
        (SessionFilter(most=0.5), ""),
        (SessionFilter(text="kettle"), "rowid=?"),
        (SessionFilter(names=[("shop", "s-3")]), "rowid=?"),
    ],
)
def test_no_list_reads_rows_of_all_sessions(
    filled: Filled, sort: str, asked: SessionFilter, most: str
) -> None:
    """An index has every number, or says the order; rows are read for what a search has found, and for the page."""
    place: list[str | int | float] = [0.0] * (len(SORTS[sort].keys) + 1)
    for at in (None, place):
        text, values = statement(asked, SORTS[sort], at, 31)
        with filled.index.reading() as reading:
            plan = reading.connection.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall()
        steps = [row[3] for row in plan]
        outer = next(each for each in steps if "sessions" in each and "AS" not in each.split())
        is_in_order = asked == EVERY and SORTS[sort].index is not None
        if is_in_order:
            assert f"INDEX {SORTS[sort].index}" in outer
            assert not any("FOR ORDER BY" in each for each in steps)
            assert at is None or outer.startswith("SEARCH")
        elif most == "rowid=?":
            assert "SEARCH sessions USING INTEGER PRIMARY KEY (rowid=?)" in steps
        else:
            assert "USING COVERING INDEX sessions_of_agent" in outer
        assert most in outer


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\xc1",
        key_after("cost", [1.0, 2]),
        key_after("worst", [1.0, 2]),
        key_after("worst", [1.0, float("nan"), 2]),
        key_after("worst", [1.0, "x", 2]),
        key_after("worst", [1 << 63, 1.0, 2]),
    ],
)
def test_a_cursor_of_another_list_starts_at_the_top(key: bytes) -> None:
    assert place_after("worst", key) is None


def test_a_cursor_keeps_its_place() -> None:
    place = [-0.1 - 0.2, -2, 77]
    assert place_after("worst", key_after("worst", place)) == place
