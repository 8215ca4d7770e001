"""How SQLite answers every statement of the index: none reads a table of 200,000 rows from end to end."""

import ast
import asyncio
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

import collector.api
from collector.api.session_list import SORTS, STATUSES
from collector.records.external import EvaluationRules
from tests.support import api_records as make
from tests.support.api_stand import Stand, filled
from tests.support.standings import drop, standings
from tests.unit.api.test_feedback import said

pytestmark = pytest.mark.heavy  # half a minute of CPU, for what a change of a statement can break
ROWS = 200_000
FIRST = 1_000
"""The first of the rows that are copies."""
API = Path(collector.api.__file__).parent
Site = tuple[str, int, int]
"""File, line and column at which a call ends."""
Given = dict[str, Any]
CALLS = {"execute", "_execute", "executemany"}
REASONS = {
    r"INDEXED BY sessions_of_agent WHERE .* ORDER BY": "one read of an index of 100 bytes a session, and a sort:"
    " 50 ms at 100,000 sessions (`python -m tests.bench --only lists`)",
    r"FROM sessions WHERE id IN \(SELECT": "a search looks at most at `FOUND` sessions, a list of names at its own",
    r"FROM agents WHERE": "a version of an agent is one row, however many sessions it has",
    r"FROM feedback WHERE \(?(trace_id|session_id|task) = \?": "one subject has at most"
    " `MOST_OF_A_SUBJECT`",
    r"feedback_of_people .* LIMIT \?\)": "once a minute, of the newest so many",
    r"SELECT count\(\*\) FROM \w+ WHERE state = 2": "once a second, of a few more than `MOST_WAITING` at most",
    r"INDEXED BY traces_decided": "of a day, once a look at Health: 0.3 s at 200,000 traces",
    r"FROM externals ORDER BY": "an agent has at most `MOST_NAMES`",
    r"state = 2 ORDER BY row_number.* LIMIT -1 OFFSET \?": "where more than `MOST_WAITING` wait, of those",
    r"WHERE e.state = 3 ORDER BY row_number": "of those that became due in the last second, or of a flood: 35 ms"
    " at 10,000",
    r"UPDATE (feedback|evaluations) SET state = [23] WHERE state = 0": "what came since the last look",
    r"FROM \(SELECT id FROM sessions INDEXED BY": "",
}
"""Statements that may scan or sort, and why that is bounded."""


class Recording(sqlite3.Connection):
    """Notes each statement with where it is called."""

    statements: ClassVar[dict[str, tuple[Any, ...]]] = {}
    sites: ClassVar[set[Site]] = set()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._note(sql, parameters)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        rows = list(parameters)
        self._note(sql, rows[0] if rows else (None,) * sql.count("?"))
        return super().executemany(sql, rows)

    def _note(self, sql: str, parameters: Any) -> None:
        frame = sys._getframe(2)
        if frame.f_code.co_filename.startswith(str(API)):
            at = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            self.sites.add((Path(frame.f_code.co_filename).name, at[1] or 0, at[3] or 0))
            if sql.lstrip().startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
                self.statements.setdefault(" ".join(sql.split()), parameters)


def sites() -> Iterator[Site]:
    for path in API.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                if called in CALLS:
                    yield path.name, node.end_lineno or 0, node.end_col_offset or 0


def swell(connection: sqlite3.Connection) -> None:
    """Copy the last trace, each copy in a session of its own, with feedback of each tenth that waits."""
    connection.execute("CREATE TEMP TABLE copies (n INTEGER PRIMARY KEY)")
    connection.execute(
        "INSERT INTO copies WITH RECURSIVE each (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM each LIMIT ?)"
        " SELECT n FROM each",
        (FIRST, ROWS),
    )
    trace, session = connection.execute("SELECT max(id), session FROM traces").fetchone()
    changed: dict[str, tuple[str, dict[str, str]]] = {
        "sessions": (
            f"id = {session}",
            {"id": "n", "session_id": "'copy-' || n", "last": "last - n"},
        ),
        "traces": (
            f"id = {trace}",
            {"id": "n", "trace_id": "printf('%032x', n)", "session": "n", "start": "start + n"},
        ),
        "signals": (f"subject = {2 * trace}", {"subject": "2 * n", "runs": "json_array(n)"}),
        "outcomes": (f"subject = {2 * trace}", {"session": "n", "subject": "2 * n"}),
    }
    for table, (which, new) in changed.items():
        columns: list[str] = [
            name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")
        ]
        values = ", ".join(new.get(each, each) for each in columns)
        connection.execute(
            f"INSERT INTO {table} SELECT {values} FROM {table}, copies WHERE {which}"
        )
    connection.execute("INSERT INTO recent SELECT n, 2 * n FROM copies")
    connection.execute("INSERT INTO texts (rowid, words) SELECT n, 'question' FROM copies")
    connection.execute(
        "INSERT INTO feedback SELECT 'copy-' || n, printf('%032x', n + (n % ? = 0) * 1e9), NULL, NULL, NULL, ? + n,"
        " 1 + (n % ? = 0), 'thumb', 'human', 1, ? FROM copies",
        (10, 1e6 * make.START, 10, msgspec.json.encode(said())),
    )
    connection.execute("DROP TABLE copies")


async def ask(stand: Stand) -> None:
    """Every question that the pages and `/api/v1` have."""
    stand.standings = standings(0.14, drop(since=make.START + 2))
    trace, agent = f"{2:032x}", "service=support-bot&agent=planner"
    session = "service=support-bot&id=s-1"
    sorts = [
        f"/api/v1/sessions?sort={sort}{also}&limit=1"
        for sort in SORTS
        for also in ("", "&service=refunds")
    ]
    filters = ["since=30d", "failed=coherence", "tool=lookup", "q=question", "attribute=a=b"]
    filters += [f"status={each}" for each in (*STATUSES, "runaway")]
    filters += ["min_reliability=0", "min_cost=0", "min_seconds=0"]
    for path in (
        *sorts,
        *(f"/api/v1/sessions?{each}{also}" for each in filters for also in ("", "&sort=cost")),
        "/",
        f"/agent?{agent}",
        f"/agent?{agent}&range=15m",
        "/sessions",
        f"/session?{session}",
        f"/session?{session}&before={trace}",
        f"/trace?id={trace}",
        f"/compare?{agent}&split={make.START}",
        "/agreement",
        "/evaluators",
        "/api/v1/agreement",
        "/api/v1/agents",
        "/api/v1/agents?limit=1",
        "/api/v1/sessions/s-1",
        f"/api/v1/traces/{trace}",
        f"/api/v1/signals?trace_id={trace}",
        "/api/v1/signals?session_id=s-1",
        "/api/v1/signals?limit=1",
    ):
        answer = await stand.get(path)
        assert answer.status_code == 200, (path, answer.text[:400])
        following = answer.json().get("next") if path.startswith("/api") else None
        if following:
            more = await stand.get(path + ("&" if "?" in path else "?") + f"cursor={following}")
            assert more.status_code == 200, path
    with stand.api._index.reading() as reading:
        reading.points(reading.versions("support-bot", "planner"), 0.0, 2e9, 9, began=0.0)
        reading.newest(1)
        reading.since(0, None, 10)
        reading.newest_sequence()
        reading.forwarded_since(0)
        reading.has_feedback("x", "x")


def write(stand: Stand) -> None:
    """What records change, and what is forgotten."""
    one, moved = make.trace(1, task_id="task"), make.trace(1, session_id="s-9", task_id="task")
    stand.take_traces(make.trace_value(one, revision=1), make.trace_value(make.trace(7)))
    stand.take_traces(make.trace_value(moved, revision=2, seen=make.START + 50))
    stand.take_signals(
        make.signal(make.trace(8), "new", score=0.5), make.session_signal(one, "cost", 0.5)
    )
    stand.take_feedback(said(), said(task_id="task"), said(session_id="s-9", service="support-bot"))
    stand.match()
    write_scores(stand)
    early = make.trace(9, session_id=f"{9:032x}")
    stand.take_signals(make.signal(early, "new", score=0.5))
    stand.take_traces(make.trace_value(replace(early, session_id="s-9")))


def write_scores(stand: Stand) -> None:
    """Scores of others of a trace, its session and a task, each in turn with and without a place."""
    index = stand.api._index
    of_session: Given = {"session_id": "s-9", "service": "support-bot"}
    of_task: Given = {"task_id": "task"}
    scores = [
        said(0.5, kind="code", name=f"score {number}", **about)
        for about in (Given(), of_task, of_session)
        for number in range(2)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collector.api.feedback_table.MOST_WAITING", 0)
        stand.take_feedback(*scores, said(0.5, kind="code", trace_id="f" * 32))
        stand.match(max_age=86_400)
        for most, quiet in ((64, 3.6e9), (1, -3.6e9)):
            patch.setattr("collector.api.evaluation_table.MOST_NAMES", most)
            patch.setattr("collector.api.evaluation_table.QUIET", quiet)
            due = index.due_scores(EvaluationRules())
            assert due
        index.published(due)
    stand.take_feedback(said(trace_id="e" * 32), said(0.5, kind="code", trace_id="e" * 32))
    stand.match()


def forget(stand: Stand) -> None:
    index = stand.api._index
    index._max_traces = 1
    stand.take_traces(*(make.trace_value(make.trace(n, session_id="s-9")) for n in (20, 21)))
    index._evict()
    index.file._checkpoint()
    index.reopen()


@pytest.fixture(scope="module")
def statements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """By statement, how SQLite goes about it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Recording))
        stand = Stand(tmp_path_factory.mktemp("index"))
        try:
            filled(stand)
            write(stand)
            asyncio.run(ask(stand))
            forget(stand)
            filled(stand)
            with stand.api._index.file.writing() as (connection, _):
                swell(connection)
            with stand.api._index.reading() as reading:
                yield {
                    sql: [
                        row[3]
                        for row in reading.connection.execute(f"EXPLAIN QUERY PLAN {sql}", given)
                    ]
                    for sql, given in Recording.statements.items()
                }
        finally:
            stand.close()


def test_every_statement_is_asked(statements: Mapping[str, Any]) -> None:
    assert len(statements) > 60
    left = sorted({*sites()} - Recording.sites)
    assert not left, left


def test_none_reads_a_large_table_from_end_to_end(statements: Mapping[str, Any]) -> None:
    found = {sql: bad for sql, plan in statements.items() if (bad := costly(sql, plan))}
    excused = {sql: reason for sql in found for reason in REASONS if re.search(reason, sql)}
    left = [f"{plan}: {sql}" for sql, plan in found.items() if sql not in excused]
    assert not left, "\n".join(left)
    assert REASONS.keys() - excused.values() == set(), "no statement needs this reason any more"


def costly(statement: str, plan: Iterable[str]) -> list[str]:
    """The steps that read a table of many rows from end to end, or sort what they read."""
    found = [each for each in plan if "TEMP B-TREE" in each and "RIGHT PART" not in each]
    ends = re.search(r"LIMIT (\?|\d)|EXISTS", statement) and "OFFSET" not in statement
    in_order = bool(ends) and not found
    small = r"SCAN ((agents|a|evaluators|about|sqlite_master|f|CONSTANT ROW|\(subquery-\d+\))( |$)|.*VIRTUAL TABLE)"
    return found + [
        each
        for each in plan
        if each.startswith("SCAN ")
        and not re.match(small, each)
        and not (in_order and " USING " in each)
    ]
