"""The servers within a running loop: bearer tokens, and bounds on connections and heads of requests."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from collector.base.bounded_protocol import BoundedProtocol, Limits, Why
from collector.base.http_server import BearerTokens, GuestServer
from tests.support.table import for_each

BEARER = BearerTokens([SecretStr("one"), SecretStr("zwölf")])


@for_each(
    ("header", "allowed"),
    [
        *((each, True) for each in ("Bearer one", "bearer  one ", "Bearer zwölf")),
        *((each, False) for each in ("Bearer onetwo", "Bearer on", "Bearer ", "Bearer \udcff")),
        *((each, False) for each in ("Basic one", "one", "", None)),
    ],
)
def test_only_a_known_token_after_the_scheme_is_allowed(header: str | None, allowed: bool) -> None:
    assert (BEARER.sender(header, "10.0.0.1") is not None) is allowed


def test_a_sender_is_its_token_and_without_tokens_its_address() -> None:
    one, again, other = (
        BEARER.sender(header, address)
        for header, address in (("Bearer one", "a"), ("bearer one", "b"), ("Bearer zwölf", "a"))
    )
    open_to_all = BearerTokens([])

    assert one == again != other
    assert not open_to_all.required
    assert open_to_all.sender(None, "10.0.0.1") == "10.0.0.1"


async def test_it_waits_for_its_stop_without_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn's own loop sleeps a tenth of a second before it sees that it should end."""
    server = GuestServer(Starlette(), limits=Limits(), closed=lambda _: None)
    looks: list[int] = []
    on_tick = server.on_tick

    async def looked(counter: int) -> bool:
        looks.append(counter)
        return await on_tick(counter)

    monkeypatch.setattr(server, "on_tick", looked)
    serving = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0)
    server.stop(1)
    for _ in range(5):
        await asyncio.sleep(0)

    assert serving.done()
    assert looks == [0, 0]
    assert dict(server.server_state.default_headers)[b"date"].endswith(b" GMT")


HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
LIMITS = Limits(head_timeout=10, idle_timeout=60, max_head=1000, max_connections=3, max_age=180)


class Clock(asyncio.AbstractEventLoop):
    """Timers run when the test says so, tasks never."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[TimerHandle] = []

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def call_later(  # type: ignore[override] -- no context is passed here
        self, delay: float, callback: Callable[..., object], *args: Any
    ) -> TimerHandle:
        return self.call_at(self.now + delay, callback, *args)

    def call_at(  # type: ignore[override] -- no context is passed here
        self, when: float, callback: Callable[..., object], *args: Any
    ) -> TimerHandle:
        self._timers.append(TimerHandle(when, callback, args, self))
        return self._timers[-1]

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        self._timers.remove(handle)

    def create_task(self, coro: Any, **_: Any) -> Any:
        coro.close()
        return Task()

    def until(self, now: float) -> None:
        while due := [each for each in self._timers if each.when() <= now]:
            timer = min(due, key=TimerHandle.when)
            self.now = timer.when()
            self._timers.remove(timer)
            timer._run()
        self.now = now


class Task:
    def add_done_callback(self, _: object) -> None:
        """It never ends."""


class Line(asyncio.Transport):
    """What is written to a connection, and whether it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.said = b""
        self.is_open = True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.said += data

    def close(self) -> None:
        self.is_open = False

    abort = close

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


async def app(_: Scope, __: Receive, ___: Send) -> None:
    """Never runs."""


class Listener:
    """Connections to one server."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.closed: list[Why] = []
        self._state = ServerState()
        self._config = uvicorn.Config(
            app, ws="none", lifespan="off", log_config=None, timeout_keep_alive=99
        )
        self._config.load()

    def connect(self) -> tuple[BoundedProtocol, Line]:
        line = Line()
        made = BoundedProtocol(
            limits=LIMITS,
            closed=self.closed.append,
            config=self._config,
            server_state=self._state,
            app_state={},
            _loop=self.clock,
        )
        made.connection_made(line)
        return made, line


def answer(cycle: RequestResponseCycle) -> None:
    """As an application does that reads no body."""
    for message in (
        {"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]},
        {"type": "http.response.body", "body": b""},
    ):
        with pytest.raises(StopIteration):
            cycle.send(message).send(None)  # type: ignore[arg-type] -- a dictionary of ASGI


@pytest.fixture
def listener() -> Listener:
    return Listener()


def says_nothing(_: Listener, __: BoundedProtocol) -> None:
    """Its head never begins."""


def begins_a_head(listener: Listener, connection: BoundedProtocol) -> None:
    listener.clock.until(9)
    connection.data_received(GET[:10])
    listener.clock.until(18)
    connection.data_received(GET[10:12])


def is_idle(_: Listener, connection: BoundedProtocol) -> None:
    connection.data_received(GET)
    answer(connection.cycle)


def does_not_read(listener: Listener, connection: BoundedProtocol) -> None:
    connection.data_received(HEAD)
    connection.pause_writing()
    listener.clock.until(29)
    connection.resume_writing()
    connection.pause_writing()


@pytest.mark.parametrize(
    ("does", "closes", "counted"),
    [
        (says_nothing, 10, ["slow_head"]),
        (begins_a_head, 19, ["slow_head"]),
        (is_idle, 60, []),
        (does_not_read, 59, ["unread"]),
    ],
)
def test_a_connection_is_closed_in_its_time(
    listener: Listener,
    does: Callable[[Listener, BoundedProtocol], None],
    closes: float,
    counted: list[Why],
) -> None:
    connection, line = listener.connect()
    does(listener, connection)

    listener.clock.until(closes - 0.1)
    assert line.is_open
    listener.clock.until(closes)

    assert not line.is_open
    assert listener.closed == counted


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_request_that_is_served_has_no_clock(listener: Listener, *, is_ahead: bool) -> None:
    """Also one that was sent while another was served."""
    connection, line = listener.connect()
    if is_ahead:
        connection.data_received(GET)
        first = connection.cycle
        connection.data_received(HEAD)
        answer(first)
    else:
        connection.data_received(HEAD)
    connection.data_received(bytes(5000))

    listener.clock.until(1000)

    assert line.is_open


def test_an_old_connection_ends_with_its_next_answer(listener: Listener) -> None:
    connection, line = listener.connect()
    for now in (50, 100, 150):
        connection.data_received(GET)
        answer(connection.cycle)
        listener.clock.until(now)
    assert b"connection: close" not in line.said
    assert line.is_open
    listener.clock.until(180)

    connection.data_received(GET)
    answer(connection.cycle)

    assert line.said.count(b"connection: close") == 1
    assert not line.is_open
    assert listener.closed == []


@pytest.mark.parametrize("piece", [b"x: y\r\n", b"y" * 100, b"y" * 1000 + b"\r\n\r\n"])
def test_a_large_head_is_refused_before_it_ends(listener: Listener, piece: bytes) -> None:
    connection, line = listener.connect()
    connection.data_received(b"GET / HTTP/1.1\r\nz: ")
    taken = 0

    while line.is_open:
        taken += len(piece)
        connection.data_received(piece)

    assert line.said.count(b"HTTP/1.1 ") == 1
    assert line.said.startswith(b"HTTP/1.1 431 ")
    assert line.said.endswith(b"the head of the request is larger than 1000 bytes\n")
    assert taken <= 1000 + len(piece)
    assert listener.closed == ["large_head"]


def test_the_rest_of_a_body_that_was_answered_early_is_no_head(listener: Listener) -> None:
    """The sender shall read its answer, not a broken connection."""
    connection, line = listener.connect()
    connection.data_received(HEAD)
    answer(connection.cycle)

    for _ in range(10):
        connection.data_received(bytes(10_000))

    assert line.is_open
    assert line.said.startswith(b"HTTP/1.1 401 ")
    listener.clock.until(60)
    assert not line.is_open


@pytest.mark.parametrize(
    ("served", "stay"),
    [([0], [True, False, False, True, True]), ([0, 1, 2], [False, True, True, False, True])],
    ids=["the longest idle one", "when all are served, the oldest request"],
)
def test_one_makes_room(listener: Listener, served: list[int], stay: list[bool]) -> None:
    lines: list[Line] = []
    for number in range(5):
        listener.clock.now = number / 10
        connection, line = listener.connect()
        if number in served:
            connection.data_received(HEAD)
        lines.append(line)

    assert [line.is_open for line in lines] == stay
    assert listener.closed == ["too_many", "too_many"]
