"""A log that is full tells senders to come back, counts it, and loses nothing once assembly runs."""

import random
import string
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo

from tests.support.agents import request
from tests.support.asking import span, trace_id
from tests.support.otlp_http import PROTOBUF
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SMALL = ("log.disk.max_size=16MiB", "windows.trace.root_grace=500ms")
MOST = 200


def big(number: int) -> bytes:
    """A trace of about 100 KB that nothing can compress away."""
    noise = "".join(random.Random(number).choices(string.ascii_letters, k=100_000))
    made = span(f"big-{number}", "Where is my order?")
    made.attributes.add(key="noise").value.string_value = noise
    return request("desk-bot", [made])


def fill(service: Service) -> tuple[int, grpc.RpcError]:
    """How many requests were accepted until one was not, and why not: more traces than `traces` has room for."""
    for number in range(MOST):
        try:
            send(service.grpc, big(number))
        except grpc.RpcError as error:
            return number, error
    raise AssertionError(f"{MOST} traces of 100 KB fit into 16 MiB")


def retry_delay(error: grpc.RpcError) -> float:
    """What the server asks for, in seconds."""
    pairs = cast("Iterable[tuple[str, bytes]]", error.trailing_metadata() or ())  # -bin keys: bytes
    delay = RetryInfo.FromString(dict(pairs)["google.rpc.retryinfo-bin"]).retry_delay
    return delay.seconds + delay.nanos / 1e9


def test_a_full_log_refuses_and_loses_nothing_that_it_took(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SMALL, "roles=[receive]") as receiver:
        accepted, refusal = fill(receiver)

        assert accepted > 20
        assert refusal.code() == grpc.StatusCode.UNAVAILABLE  # pyright: ignore[reportAttributeAccessIssue]
        assert 0.5 < retry_delay(refusal) <= 5
        post = urllib.request.Request(receiver.http, big(accepted), PROTOBUF)
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(post, timeout=10)
        assert error.value.code == 503
        assert int(error.value.headers["retry-after"]) >= 1
        error.value.close()
        metrics = receiver.metrics()
        counted = "spanwise_spans_received_total{result=%s,transport=%s}"
        assert metrics[counted % ('"refused"', '"grpc"')] == 1
        assert metrics[counted % ('"refused"', '"http"')] == 1
        assert metrics[counted % ('"accepted"', '"grpc"')] == accepted

    with Service(tmp_path / "data", *SMALL) as whole:
        expected = {trace_id(f"big-{number}") for number in range(accepted)}
        whole.wait_for(
            "every accepted trace is scored",
            lambda: expected <= {each["trace_id"] for each in whole.signals()},
            timeout=90,
        )
