"""`windows.memory` bounds what open traces really take, not the bytes that they were sent in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import START
from tests.support.hostile import field_of, peak, post, resident
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LIMIT = 16
COUNT = 80_000
MB = 1 << 20
OPEN = ("windows.trace.root_grace=10m", "windows.trace.idle=10m", f"windows.memory={LIMIT}MiB")
_TIMES = bytes((0x39,)) + START.to_bytes(8, "little") + bytes((0x41,)) + START.to_bytes(8, "little")


def smallest(trace: int, number: int) -> bytes:
    """A span of some fifty bytes below a parent that never comes."""
    ids = field_of(1, trace.to_bytes(16, "big")) + field_of(2, number.to_bytes(8, "big"))
    return field_of(2, ids + field_of(4, b"missing!") + _TIMES)


def requests(spans: Iterator[bytes], size: int = 4000) -> Iterator[bytes]:
    group: list[bytes] = []
    for each in spans:
        group.append(each)
        if len(group) == size:
            yield field_of(1, field_of(2, b"".join(group)))
            group.clear()


def many_traces() -> Iterator[bytes]:
    return (smallest(n + 1, 1) for n in range(COUNT))


def test_small_traces_take_no_more_than_the_limit(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *OPEN) as service:
        before = resident(service.pid)

        for body in requests(many_traces()):
            assert post(service.http, body)[0] == 200
        service.wait_for("they are assembled", lambda: taken(service) >= COUNT, timeout=60)

        grown = peak(service.pid) - before
        buffered = service.metrics()["spanwise_buffer_bytes"]
        assert buffered <= LIMIT * MB
        assert grown < 5 * LIMIT * MB, f"{grown / MB:.0f} MB for {buffered / MB:.1f} MB buffered"


def taken(service: Service) -> float:
    """Traces that assembly has opened."""
    found = service.metrics()
    closed = sum(v for k, v in found.items() if k.startswith("spanwise_traces_closed_total"))
    return found["spanwise_traces_active"] + closed
