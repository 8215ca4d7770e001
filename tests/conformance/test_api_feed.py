"""How the index behind the API fills, and what bounds it."""

import asyncio
import base64
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from collector.api.index_file import NAME
from collector.api.query import Query
from collector.base.errors import LogUnavailable
from collector.log.port import SIGNALS, TRACES
from tests.support import api_records as make
from tests.support.api_stand import Stand, filled

PAGE = 4096


SHARED = 32 << 10
"""Bytes of the file over which SQLite's connections share what the write-ahead log holds."""


def bytes_in(folder: Path) -> int:
    """Of all files."""
    return sum(each.stat().st_size for each in folder.iterdir())


def noise(seed: int, length: int) -> str:
    """A text that cannot be compressed by more than a quarter."""
    return base64.b64encode(random.Random(seed).randbytes(length)).decode()[:length]


async def test_the_index_forgets_the_oldest_and_counts_it(tmp_path: Path) -> None:
    stand = Stand(tmp_path, "serve.index=4MiB")
    for number in range(1, 500):
        of = make.trace(number, session_id=f"s-{number}", input=noise(number, 4000))
        stand.take_traces(make.trace_value(of))
        stand.take_signals(make.signal(of, metadata={"pad": noise(-number, 8000)}))
    newest = (await stand.get("/api/v1/sessions?limit=1")).json()["items"]
    oldest = await stand.get("/api/v1/sessions/s-1")
    signals = await stand.get(f"/api/v1/signals?trace_id={1:032x}")
    counted = {
        kind: stand.counted("spanwise_index_evicted_total", kind=kind, reason="index_full")
        for kind in ("session", "trace", "signal", "index")
    }
    used = stand.counted("spanwise_index_bytes")
    kept = bytes_in(tmp_path)
    (agent,) = Query(stand.api._index).agents(limit=2).items
    stand.close()

    assert newest[0]["session_id"] == "s-499"
    assert oldest.status_code == 404
    assert signals.json()["items"] == []
    assert counted["session"] == counted["trace"] == counted["signal"] > 100
    assert counted["index"] == 0
    assert agent.sessions == 499 - counted["session"]
    assert 0 < used <= 4 << 20
    assert kept <= (4 << 20) + SHARED


async def test_a_session_keeps_its_newest_traces(tmp_path: Path) -> None:
    stand = Stand(tmp_path, "windows.session.max_traces=3")
    for number in range(1, 6):
        stand.take_traces(make.trace_value(make.trace(number)))
    session = (await stand.get("/api/v1/sessions/s-1")).json()
    gone = stand.counted("spanwise_index_evicted_total", kind="trace", reason="session_full")
    stand.close()

    assert [turn["input"] for turn in session["traces"]] == [f"question {n}" for n in (3, 4, 5)]
    assert (session["traces"][0]["trace_id"], gone) == (f"{3:032x}", 2)


async def test_records_are_indexed_then_committed_and_poison_is_passed_over(stand: Stand) -> None:
    one, two = make.trace(1), make.trace(2)
    for value in (make.trace_value(one), b"\x00 not a record", make.trace_value(two)):
        stand.log.append(TRACES, value)
    stand.log.append(SIGNALS, b"{}")
    stand.log.append(SIGNALS, make.value(make.signal(one)))
    stand.log.poll_failures = [LogUnavailable("for now")]
    stopping = asyncio.Event()

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.api.run(stopping))
        while committed(stand).keys() != {("api.traces", TRACES), ("api.signals", SIGNALS)}:
            stand.time += 1.0
            await asyncio.sleep(0.02)
        stopping.set()

    session = (await stand.get("/api/v1/sessions/s-1")).json()
    assert len(session["traces"]) == 2
    assert committed(stand) == {("api.traces", TRACES): 3, ("api.signals", SIGNALS): 2}
    assert stand.counted("spanwise_poison_records_total", topic="traces") == 1
    assert stand.counted("spanwise_poison_records_total", topic="signals") == 1


def committed(stand: Stand) -> dict[tuple[str, str], int]:
    return {(each.group, each.topic): each.offset for each in stand.log.commits}


@pytest.mark.parametrize("table", ["traces", "traces_by_id", "sqlite_schema"])
async def test_an_index_with_damaged_pages_starts_empty(tmp_path: Path, table: str) -> None:
    stand = Stand(tmp_path)
    stand.take_traces(make.trace_value(make.trace(1)))
    root = root_of(tmp_path, table)
    stand.close()
    with (tmp_path / NAME).open("r+b") as file:
        file.seek((root - 1) * PAGE + (100 if root == 1 else 0))
        file.write(b"\xff" * 2_000)

    stand = Stand(tmp_path)
    before = await stand.get(f"/api/v1/traces/{1:032x}")
    stand.take_traces(make.trace_value(make.trace(2)))
    after = await stand.get(f"/api/v1/traces/{2:032x}")
    forgotten = stand.counted("spanwise_index_evicted_total", kind="index", reason="damaged")
    stand.close()

    if table == "sqlite_schema":  # met when it is opened
        assert (before.status_code, forgotten) == (404, 0)
    else:
        assert (before.status_code, forgotten) == (503, 1)
        assert "damaged" in before.json()["error"]["message"]
    assert after.status_code == 200


def root_of(folder: Path, table: str) -> int:
    """The first page of a table or of its index."""
    with closing(sqlite3.connect(folder / NAME)) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
        return (found.fetchone() or (1,))[0]


@pytest.mark.parametrize("value", [b"\xff\xff", b"", None, "text"])
async def test_a_damaged_value_is_met_by_a_read_or_a_record_and_the_index_goes_on(
    tmp_path: Path, value: object
) -> None:
    stand = Stand(tmp_path)
    filled(stand)
    overwrite(tmp_path, value)
    before = await stand.get("/api/v1/signals")
    stand.take_traces(make.trace_value(make.trace(7)))
    filled(stand)

    overwrite(tmp_path, value)
    stand.take_signals(make.signal(make.trace(1), revision=3))
    after = await stand.get(f"/api/v1/traces/{1:032x}")
    forgotten = stand.counted("spanwise_index_evicted_total", kind="index", reason="damaged")
    stand.close()

    assert before.status_code == 503
    assert after.status_code == 200
    assert forgotten == 2


def overwrite(folder: Path, value: object) -> None:
    """All packed signals."""
    with closing(sqlite3.connect(folder / NAME)) as connection, connection:
        connection.execute("UPDATE signals SET signals = ?", (value,))


async def test_an_index_that_is_larger_than_it_may_be_gives_pages_back(tmp_path: Path) -> None:
    stand = Stand(tmp_path, "serve.index=64MiB")
    for number in range(1, 700):
        of = make.trace(number, session_id=f"s-{number}", input=noise(number, 2_000))
        stand.take_traces(make.trace_value(of))
        stand.take_signals(make.signal(of, metadata={"pad": noise(-number, 8_000)}))
    stand.close()
    before = (tmp_path / NAME).stat().st_size

    stand = Stand(tmp_path, "serve.index=4MiB")
    stand.take_traces(make.trace_value(make.trace(700, session_id="s-700")))
    sessions = (await stand.get("/api/v1/sessions?limit=500")).json()["items"]
    stand.close()

    assert before > 5 << 20
    assert (tmp_path / NAME).stat().st_size <= 4 << 20
    assert sessions[0]["session_id"] == "s-700"
    assert len(sessions) > 170


async def test_the_index_is_on_the_disk_before_its_records_are_committed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    index = stand.api._index
    monkeypatch.setattr(index, "sync", lambda: synced.append(len(stand.log.commits)))
    stand.log.append(TRACES, make.trace_value(make.trace(1)))
    stopping = asyncio.Event()

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.api.run(stopping))
        while not stand.log.commits:
            stand.time += 1.0
            await asyncio.sleep(0.02)
        stopping.set()

    assert synced
    assert synced[0] == 0


async def test_reads_see_what_was_committed_when_they_began(stand: Stand) -> None:
    stand.take_traces(make.trace_value(make.trace(1)))
    index = stand.api._index

    with index.reading() as earlier:
        assert earlier.trace(f"{1:032x}") is not None
        stand.take_traces(make.trace_value(make.trace(2)))
        assert earlier.trace(f"{2:032x}") is None
        with index.reading() as later:
            assert later.trace(f"{2:032x}") is not None
