"""Whatever comes to a port: an answer of the declared ones, and every span that was sent is counted once."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx
import pytest
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz, seed
from tests.support.mutation import mutated, not_unicode, otlp_json, torn
from tests.support.otlp import spans_of
from tests.support.receiving import Served, export, serving

pytestmark = pytest.mark.timeout(7200)

PROTOBUF, JSON = "application/x-protobuf", "application/json"
RESULTS = ("accepted", "refused", "invalid", "too_large", "unauthenticated")
STATUSES = {200, 400, 403, 413, 415}
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """One event loop for all examples: a started receiver belongs to it."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def served(run: Run) -> Iterator[Served]:
    running = serving()
    found = run(running.__aenter__())
    yield found
    run(running.__aexit__(None, None, None))


@dataclass
class Answered:
    """What the sender was told."""

    is_ok: bool = False
    rejected: int = 0


@contextmanager
def counting(served: Served, transport: str, sent: bytes) -> Generator[Answered]:
    """What is said of a request fits what is counted of it; `sent` is the whole one, if nothing of it is damaged."""

    def counts() -> dict[str, float]:
        return {each: served.count(transport, each) for each in RESULTS}

    before, held, answer = counts(), len(served.log.written), Answered()
    yield answer
    now = {result: count - before[result] for result, count in counts().items()}
    records = [ExportTraceServiceRequest.FromString(r.value) for r in served.log.written[held:]]
    assert now["accepted"] == sum(len(spans_of(each)) for each in records)
    if answer.is_ok:
        assert answer.rejected == now["invalid"] + now["too_large"]
    else:
        assert now["accepted"] == 0
        assert sum(now.values()) > 0 or transport == "http", "there it may be a form of no use"
    if sent:
        assert answer.is_ok
        assert sum(now.values()) == len(spans_of(ExportTraceServiceRequest.FromString(sent)))


def damaged(request: bytes, random: Random) -> bytes:
    """Mostly a valid request, sometimes with a text that is not Unicode, sometimes torn."""
    return random.choice(
        (lambda: request, lambda: not_unicode(request, random), lambda: torn(request, random))
    )()


def test_requests_over_grpc_get_a_declared_answer(fuzz: Fuzz, served: Served, run: Run) -> None:
    def check(number: int, random: Random) -> None:
        whole = mutated(seed(number), random)
        request = damaged(whole, random)
        with counting(served, "grpc", whole if request == whole else b"") as answer:
            said = run(export(served.target, request))
            answer.is_ok, answer.rejected = said.code.name == "OK", said.rejected
        assert said.code.name in {"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}

    fuzz(check, SEEDS, RANDOM)


HEADERS = st.dictionaries(
    st.sampled_from(
        ["content-type", "content-encoding", "origin", "authorization", "accept", "te"]
    ),
    st.sampled_from([PROTOBUF, JSON, f"{JSON}; charset=x", "gzip", "deflate", "zstd", "identity"])
    | st.text("ab;=/, \"'", max_size=8)
    | st.sampled_from(["null", "http://localhost", "https://evil.example", "http://[", "Bearer x"]),
    max_size=4,
)


@pytest.fixture(scope="module")
def client(run: Run) -> Iterator[httpx.AsyncClient]:
    """One for all examples: making one costs more than a request."""
    made = httpx.AsyncClient(timeout=20, verify=False)
    yield made
    run(made.aclose())


def test_requests_over_http_get_a_declared_answer(
    fuzz: Fuzz, served: Served, run: Run, client: httpx.AsyncClient
) -> None:
    def check(number: int, headers: dict[str, str], random: Random) -> None:
        request = damaged(mutated(seed(number), random), random)
        kind = random.choice((PROTOBUF, JSON))
        body = request if kind == PROTOBUF else torn(otlp_json(seed(number)), random)
        given = {"content-type": kind, **{k: v.strip() for k, v in headers.items()}}
        with counting(served, "http", b"") as answer:
            reply = run(client.post(served.url, content=body, headers=given))
            answer.is_ok = reply.status_code == 200
            answer.rejected = _rejected(reply) if answer.is_ok else 0
        assert reply.status_code in STATUSES, reply

    fuzz(check, SEEDS, HEADERS, RANDOM)


def _rejected(reply: httpx.Response) -> int:
    if reply.headers["content-type"].startswith(JSON):
        return int(reply.json().get("partialSuccess", {}).get("rejectedSpans", 0))
    said = ExportTraceServiceResponse.FromString(reply.content)
    return said.partial_success.rejected_spans


HEAD = (
    b"POST /v1/traces?a=b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 2\r\naccept: */*\r\norigin: http://localhost\r\nconnection: close\r\n\r\n{}"
)


def test_torn_heads_get_a_declared_answer_or_none(fuzz: Fuzz, served: Served, run: Run) -> None:
    port = served.receiver.http_port

    def ask(head: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.settimeout(10)
            sock.sendall(head)
            sock.shutdown(socket.SHUT_WR)
            said = b""
            while got := sock.recv(1 << 16):
                said += got
            return said

    async def asked(head: bytes) -> bytes:
        return await asyncio.to_thread(ask, head)

    def check(random: Random) -> None:
        said = run(asked(torn(HEAD, random)))
        for answer in said.split(b"HTTP/1.1 ")[1:]:
            assert int(answer[:3]) in {*STATUSES, 404, 405, 431}, answer

    fuzz(check, RANDOM)
