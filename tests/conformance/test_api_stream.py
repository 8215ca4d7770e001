"""The live stream of signals: who gets what, who is let go, and where a client that comes again goes on."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx
import pytest

from collector.api.off_loop import OffLoop
from collector.api.store import SignalEntry, sequence_of
from collector.api.stream import (
    BLOCK,
    CLIENTS,
    UNREAD_BYTES,
    UNREAD_SECONDS,
    Stream,
    StreamPlace,
    place_of,
)
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand

MB = 1 << 20


class Event(NamedTuple):
    kind: str
    data: str
    id: str


def events_in(text: str) -> list[Event]:
    """The server-sent events of a text, comments left out."""
    found: list[Event] = []
    for part in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in part.split("\n") if line[:1] != ":" and line)
        if "event" in lines:
            found.append(Event(lines["event"], lines["data"], lines.get("id", "")))
    return found


async def rest(stream: AsyncIterator[bytes]) -> list[Event]:
    """What comes before the stream ends."""
    return events_in(b"".join([part async for part in stream]).decode())


def entries(first: int, count: int, json: bytes = b"{}") -> list[SignalEntry]:
    """Signals as the index hands them on."""
    return [
        SignalEntry("", sequence_of(n, 1), 0, 0, n, "e", "s", True, json)
        for n in range(first, first + count)
    ]


def take(stand: Stand, *numbers: int) -> None:
    """A signal of each of these traces, through the index to the stream."""
    for number in numbers:
        of = make.trace(number, session_id=f"s-{number}")
        taken = stand.take_signals(make.signal(of))
        stand.api._stream.publish(taken.signals)


def traces_in(events: list[Event]) -> list[int]:
    return [int(json.loads(each.data)["trace_id"], 16) for each in events if each.kind == "signal"]


async def test_the_stream_sends_new_signals_once(stand: Stand) -> None:
    answer: list[httpx.Response] = []

    async def follow() -> None:
        answer.append(await stand.get("/api/v1/signals/stream"))

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(follow())
        while not stand.counted("spanwise_stream_clients"):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.01)
        signal = make.signal(make.trace(1))
        for _ in range(2):
            taken = stand.api._index.take_signals(make.signal_records(signal))
            stand.api._stream.publish(taken.signals)
        stand.api._stream.close()

    assert answer[0].headers["content-type"].startswith("text/event-stream")
    assert answer[0].headers["connection"] == "close"
    event, end = events_in(answer[0].text)
    assert (event.kind, json.loads(event.data)["id"]) == ("signal", signal.id)
    assert (end.kind, json.loads(end.data)["reason"]) == ("end", "stopping")


async def test_a_batch_of_many_signals_lets_no_reader_go(stand: Stand) -> None:
    stream = stand.api._stream
    reader = stream.subscribe()
    await anext(reader)

    stream.publish(entries(1, 20_000))
    stream.close()

    events = await rest(reader)
    assert [each.kind for each in events] == ["signal"] * 20_000 + ["end"]
    assert stand.counted("spanwise_stream_clients_dropped_total", reason="slow") == 0


async def test_a_client_with_too_many_bytes_unread_is_disconnected_with_a_reason(
    stand: Stand,
) -> None:
    stream = stand.api._stream
    slow, fast = stream.subscribe(), stream.subscribe()
    await anext(slow)
    await anext(fast)

    read = 0
    for number in range(UNREAD_BYTES // MB + 1):
        stream.publish(entries(number + 1, 1, bytes(MB)))
        read += len(events_in((await anext(fast)).decode()))

    (end,) = await rest(slow)
    assert json.loads(end.data)["reason"] == "slow"
    assert read == UNREAD_BYTES // MB + 1
    dropped = stand.counted("spanwise_stream_clients_dropped_total", reason="slow")
    assert (dropped, stand.counted("spanwise_stream_clients")) == (1, 1)


async def test_a_client_that_leaves_something_unread_for_long_is_let_go(stand: Stand) -> None:
    time = [0.0]
    api = stand.api
    stream = Stream(
        api._stream._families, api._index, OffLoop(api._stream._families), now=lambda: time[0]
    )
    slow, fast = stream.subscribe(), stream.subscribe()
    await anext(slow)
    await anext(fast)

    for number in range(1, 4):
        stream.publish(entries(number, 1))
        await anext(fast)
        time[0] += UNREAD_SECONDS / 2

    (end,) = await rest(slow)
    assert json.loads(end.data)["reason"] == "slow"
    stream.close()
    assert [each.kind for each in await rest(fast)] == ["end"]


async def test_what_every_client_has_read_is_not_held(stand: Stand) -> None:
    stream = stand.api._stream
    one, two = stream.subscribe(), stream.subscribe()
    for each in (one, two):
        await anext(each)
    stream.publish(entries(1, 3, bytes(BLOCK)))
    for each in (one, one, one, two):
        await anext(each)

    assert len(stream._blocks) == 2
    await two.aclose()  # type: ignore[attr-defined] # it is a generator
    assert (len(stream._blocks), stream._bytes) == (0, 0)


async def first_of(stand: Stand, *numbers: int) -> StreamPlace:
    """The place behind the first block that a client reads of these traces."""
    stand.api._stream.begin()
    reader = stand.api._stream.subscribe()
    await anext(reader)
    take(stand, *numbers)
    return place_of(events_in((await anext(reader)).decode())[-1].id)


async def missed_since(stand: Stand, place: StreamPlace) -> list[Event]:
    """What a client that comes again gets before the stream ends."""
    again = stand.api._stream.subscribe(place)
    stand.api._stream.close()
    return await rest(again)


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_client_that_comes_again_goes_on_where_it_stopped(
    new_stand: NewStand, *, restarts: bool
) -> None:
    stand = new_stand()
    place = await first_of(stand, 1, 2, 3)
    if restarts:
        stand.close()
        stand = new_stand(folder=stand.folder)
        stand.api._stream.begin()
    again = stand.api._stream.subscribe(place)
    await anext(again)
    take(stand, 4)
    stand.api._stream.close()

    events = await rest(again)
    assert traces_in(events) == [2, 3, 4], "none twice, none left out"
    assert [each.kind for each in events] == ["signal"] * 3 + ["end"]


async def test_a_client_learns_what_the_index_no_longer_has(new_stand: NewStand) -> None:
    stand = new_stand("serve.index=4MiB")
    place = await first_of(stand, 1)
    for number in range(2, 700):
        of = make.trace(number, session_id=f"s-{number}")
        stand.take_traces(of)
        pad = random.Random(number).randbytes(15_000).hex()
        taken = stand.take_signals(make.signal(of, metadata={"pad": pad}))
        stand.api._stream.publish(taken.signals)
        if stand.counted("spanwise_index_evicted_total", kind="signal", reason="index_full") > 5:
            break

    events = await missed_since(stand, place)

    assert [each.kind for each in events[:2]] == ["missed", "signal"]


async def test_an_id_of_another_index_gets_all_that_this_one_has(stand: Stand) -> None:
    stand.api._stream.begin()
    take(stand, 1, 2)

    events = await missed_since(stand, place_of("0badc0de-99999999"))

    assert [each.kind for each in events] == ["missed", "signal", "signal", "end"]


@pytest.mark.parametrize("wrong", ["", "7", "x-", "a-b", "-1", "ab-²", f"ab-{10**30}"])
async def test_a_last_event_id_that_is_none_is_said_to_be_none(stand: Stand, wrong: str) -> None:
    headers = [(b"last-event-id", wrong.encode("latin-1", "replace"))]
    async with stand.client() as client:
        answer = await client.get("/api/v1/signals/stream", headers=headers)

    assert answer.status_code == 422
    assert "Last-Event-ID" in answer.json()["error"]["message"]


async def test_clients_are_bounded(stand: Stand) -> None:
    followers = [stand.api._stream.subscribe() for _ in range(CLIENTS)]

    answer = await stand.get("/api/v1/signals/stream")

    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "unavailable")
    assert f"{CLIENTS} clients follow the stream" in answer.json()["error"]["message"]
    assert stand.counted("spanwise_stream_clients_dropped_total", reason="too_many") == 1
    assert len(followers) == CLIENTS


async def test_a_client_that_is_gone_before_its_stream_begins_leaves_its_place(
    stand: Stand,
) -> None:
    for _ in range(CLIENTS):
        stand.api._stream.subscribe()

    assert stand.counted("spanwise_stream_clients") == 0
