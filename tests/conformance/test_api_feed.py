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
from tests.support.api_stand import NewStand, Stand, filled

PAGE = 4096
SHARED = 32 << 10
"""Bytes of the file over which SQLite's connections share what the write-ahead log holds."""


def bytes_in(folder: Path) -> int:
    """Of all files."""
    return sum(each.stat().st_size for each in folder.iterdir())


def noise(seed: int, length: int) -> str:
    """A text that cannot be compressed by more than a quarter."""
    return base64.b64encode(random.Random(seed).randbytes(length)).decode()[:length]


def fill(stand: Stand, numbers: range) -> None:
    """Sessions of these numbers, of a text of 4,000 characters and a signal."""
    for number in numbers:
        of = make.trace(number, session_id=f"s-{number}", input=noise(number, 4_000))
        stand.take_traces(of)
        stand.take_signals(make.signal(of, metadata={"pad": noise(-number, 8_000)}))


def evicted(stand: Stand, kind: str, reason: str) -> float:
    return stand.counted("spanwise_index_evicted_total", kind=kind, reason=reason)


@pytest.mark.parametrize("begins", ["4MiB", "64MiB"])
async def test_the_index_forgets_the_oldest_and_counts_it(new_stand: NewStand, begins: str) -> None:
    """Also one that is larger than it may be now: it gives pages back."""
    stand = new_stand(f"serve.index={begins}")
    fill(stand, range(1, 499))
    if begins != "4MiB":
        assert bytes_in(stand.folder) > 5 << 20
        stand.close()
        stand = new_stand("serve.index=4MiB", folder=stand.folder)
    fill(stand, range(499, 500))

    gone = evicted(stand, "session", "index_full")
    assert (await stand.items("sessions?limit=1"))[0]["session_id"] == "s-499"
    assert (await stand.get("/api/v1/sessions/s-1")).status_code == 404
    assert await stand.items(f"signals?trace_id={1:032x}") == []
    assert gone > 100
    assert [evicted(stand, kind, "index_full") for kind in ("trace", "signal")] == [gone, gone]
    assert evicted(stand, "index", "index_full") == 0
    (agent,) = Query(stand.api._index).agents(limit=2).items
    assert agent.sessions == 499 - gone
    assert 0 < stand.counted("spanwise_index_bytes") <= 4 << 20
    assert bytes_in(stand.folder) <= (4 << 20) + SHARED


async def test_a_session_keeps_its_newest_traces(new_stand: NewStand) -> None:
    stand = new_stand("windows.session.max_traces=3")
    stand.take_traces(*map(make.trace, range(1, 6)))

    traces = (await stand.json("sessions/s-1"))["traces"]

    assert [turn["input"] for turn in traces] == [f"question {n}" for n in (3, 4, 5)]
    assert traces[0]["trace_id"] == f"{3:032x}"
    assert evicted(stand, "trace", "session_full") == 2


async def test_records_are_indexed_then_committed_and_poison_is_passed_over(stand: Stand) -> None:
    one, two = make.trace(1), make.trace(2)
    for value in (make.trace_value(one), b"\x00 not a record", make.trace_value(two)):
        stand.log.append(TRACES, value)
    stand.log.append(SIGNALS, b"{}")
    stand.log.append(SIGNALS, make.value(make.signal(one)))
    stand.log.poll_failures = [LogUnavailable("for now")]

    await run_until_committed(stand, {("api.traces", TRACES), ("api.signals", SIGNALS)})

    assert len((await stand.json("sessions/s-1"))["traces"]) == 2
    assert committed(stand) == {("api.traces", TRACES): 3, ("api.signals", SIGNALS): 2}
    assert stand.counted("spanwise_poison_records_total", topic="traces") == 1
    assert stand.counted("spanwise_poison_records_total", topic="signals") == 1


def committed(stand: Stand) -> dict[tuple[str, str], int]:
    return {(each.group, each.topic): each.offset for each in stand.log.commits}


async def run_until_committed(stand: Stand, readers: set[tuple[str, str]]) -> None:
    stopping = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.api.run(stopping))
        while not readers <= committed(stand).keys():
            stand.time += 1.0
            await asyncio.sleep(0.02)
        stopping.set()


@pytest.mark.parametrize("table", ["traces", "traces_by_id", "sqlite_schema"])
async def test_an_index_with_damaged_pages_starts_empty(new_stand: NewStand, table: str) -> None:
    stand = new_stand()
    folder = stand.folder
    stand.take_traces(make.trace(1))
    root = root_of(folder, table)
    stand.close()
    with (folder / NAME).open("r+b") as file:
        file.seek((root - 1) * PAGE + (100 if root == 1 else 0))
        file.write(b"\xff" * 2_000)

    stand = new_stand(folder=folder)
    before = await stand.get(f"/api/v1/traces/{1:032x}")
    stand.take_traces(make.trace(2))
    after = await stand.get(f"/api/v1/traces/{2:032x}")
    forgotten = evicted(stand, "index", "damaged")

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
    filled_stand: Stand, value: object
) -> None:
    stand = filled_stand
    overwrite(stand.folder, value)
    assert (await stand.get("/api/v1/signals")).status_code == 503
    stand.take_traces(make.trace(7))
    filled(stand)

    overwrite(stand.folder, value)
    stand.take_signals(make.signal(make.trace(1), revision=3))

    assert (await stand.get(f"/api/v1/traces/{1:032x}")).status_code == 200
    assert evicted(stand, "index", "damaged") == 2


def overwrite(folder: Path, value: object) -> None:
    """All packed signals."""
    with closing(sqlite3.connect(folder / NAME)) as connection, connection:
        connection.execute("UPDATE signals SET signals = ?", (value,))


async def test_the_index_is_on_the_disk_before_its_records_are_committed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    index = stand.api._index
    monkeypatch.setattr(index, "sync", lambda: synced.append(len(stand.log.commits)))
    stand.log.append(TRACES, make.trace_value(make.trace(1)))

    await run_until_committed(stand, {("api.traces", TRACES)})

    assert synced[:1] == [0]


async def test_reads_see_what_was_committed_when_they_began(stand: Stand) -> None:
    stand.take_traces(make.trace(1))
    index = stand.api._index

    with index.reading() as earlier:
        assert earlier.trace(f"{1:032x}") is not None
        stand.take_traces(make.trace(2))
        assert earlier.trace(f"{2:032x}") is None
        with index.reading() as later:
            assert later.trace(f"{2:032x}") is not None
