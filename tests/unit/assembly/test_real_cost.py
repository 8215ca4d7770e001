"""What an open trace is charged against `windows.memory` is what it takes, not the bytes that were sent."""

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from tests.support.open_traces_driver import OpenTracesDriver
from tests.support.spans import Made, child, request

COUNT = 2_000
Requests = Iterator[bytes]


def many_traces() -> Requests:
    return (request(child(2, trace=n)) for n in range(1, COUNT))


def many_spans() -> Requests:
    return (request(child(n, 10**6 + n, trace=1)) for n in range(2, COUNT))


def many_services() -> Requests:
    return (request(Made(trace=n, span=2, parent=1, service=f"shop-{n}")) for n in range(1, COUNT))


@pytest.mark.heavy
@pytest.mark.parametrize("requests", [many_traces, many_spans, many_services])
@pytest.mark.parametrize("by_ref", [False, True])
def test_the_charge_is_what_tracemalloc_measures(
    requests: Callable[[], Requests], by_ref: bool
) -> None:
    sent = [*requests()]
    driver = OpenTracesDriver(by_ref=by_ref)
    tracemalloc.start()
    try:
        for each in sent:
            driver.send(100, each)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    there_before = 0 if by_ref else sum(map(len, sent))
    charged = driver.open_traces.size - there_before
    assert 0.8 * taken <= charged <= 1.5 * taken
