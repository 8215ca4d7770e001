"""`windows.memory` and `windows.session.memory` bound what open traces and sessions really take, not what was sent.

Measured is what the process cannot give back (RssAnon): pages of the log that the system keeps in memory do not count.
The least that any service needs is taken before, after some requests: what is measured then is what more of them add.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import request
from tests.support.asking import START, span
from tests.support.hostile import field_of, post, unreclaimable
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LIMIT = 16
COUNT = 80_000
WARM = 8_000
SESSIONS_LIMIT = 1
SESSIONS = 5_500
WARM_SESSIONS = 2_500
"""Three times what fits into their limit, and more than may be awake, so that every cache is full."""
MB = 1 << 20
MARK = 400
"""Bytes that assembly remembers of a closed trace, of 200,000 at most (docs/operate.md)."""
_TIMES = bytes((0x39,)) + START.to_bytes(8, "little") + bytes((0x41,)) + START.to_bytes(8, "little")


def smallest(trace: int, number: int) -> bytes:
    """A span of some fifty bytes below a parent that never comes."""
    ids = field_of(1, trace.to_bytes(16, "big")) + field_of(2, number.to_bytes(8, "big"))
    return field_of(2, ids + field_of(4, b"missing!") + _TIMES)


def requests(first: int, last: int, size: int = 4000) -> Iterator[bytes]:
    """Traces of one such span each."""
    for start in range(first, last, size):
        spans = (smallest(number + 1, 1) for number in range(start, min(start + size, last)))
        yield field_of(1, field_of(2, b"".join(spans)))


def taken(service: Service) -> float:
    """Traces that assembly has opened."""
    closed = service.total("spanwise_traces_closed_total")
    return service.total("spanwise_traces_active") + closed


def test_small_traces_take_no_more_than_the_limit(tmp_path: Path) -> None:
    settings = (
        "roles=[receive,assemble]",
        "windows.trace.root_grace=10m",
        "windows.trace.idle=10m",
        f"windows.memory={LIMIT}MiB",
    )
    with Service(tmp_path / "data", *settings) as service:
        send(service, 0, WARM)
        before = unreclaimable(service.pid)
        most = send(service, WARM, COUNT)
        buffered = service.metrics()["spanwise_buffer_bytes"]

    grown = most - before
    assert buffered <= LIMIT * MB
    # Three times the limit, as memory that was freed in between lies in pieces, and a request of 4,000 traces is taken
    # whole; charged by the bytes sent it is 110 MB.
    assert grown < 3 * LIMIT * MB + COUNT * MARK, f"{grown / MB:.0f} MB for {buffered / MB:.1f} MB"


def send(service: Service, first: int, last: int) -> int:
    """Returns the most that the process held until all were assembled."""
    most = 0
    for body in requests(first, last):
        assert post(service.http, body)[0] == 200
        most = max(most, unreclaimable(service.pid))

    def assembled() -> bool:
        nonlocal most
        most = max(most, unreclaimable(service.pid))
        return taken(service) >= last

    service.wait_for("they are assembled", assembled, timeout=150)
    return most


def test_sessions_of_long_answers_take_no_more_than_the_limit(tmp_path: Path) -> None:
    settings = (
        "windows.trace.root_grace=100ms",
        "embedder.kind=none",
        "serve.index=4MiB",
        f"windows.session.memory={SESSIONS_LIMIT}MiB",
    )
    with Service(tmp_path / "data", *settings) as service:
        score(service, 0, WARM_SESSIONS)
        before = unreclaimable(service.pid)
        score(service, WARM_SESSIONS, SESSIONS)
        grown = unreclaimable(service.pid) - before
        found = service.metrics()

    assert found["spanwise_sessions_bytes"] <= SESSIONS_LIMIT * MB + 20_000
    closed = found['spanwise_sessions_closed_total{reason="memory",service="desk-bot"}']
    assert closed + found["spanwise_sessions_active"] == SESSIONS
    # Pieces that the allocator keeps; sessions that are not packed would take 45 MB.
    assert grown < 30 * MB, f"{grown / MB:.0f} MB"


def score(service: Service, first: int, last: int) -> None:
    """Sessions of one trace each, its answer longer than a session keeps."""
    answer = "x" * 9000
    for start in range(first, last, 100):
        asked = [
            span(f"session-{number}", "Tell me all.", f"{number} {answer}")
            for number in range(start, min(start + 100, last))
        ]
        body = request("desk-bot", asked)
        service.wait_for("it is taken", lambda body=body: post(service.http, body)[0] == 200)

    def scored() -> bool:
        closed = service.total("spanwise_sessions_closed_total")
        return service.total("spanwise_sessions_active") + closed >= last

    service.wait_for("they are scored", scored, timeout=150)
