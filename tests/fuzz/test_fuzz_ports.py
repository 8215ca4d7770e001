"""Whatever comes to a port: an answer of the declared ones, and every span that was sent is counted once."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collector.base.telemetry import Telemetry
from collector.receiver.answers import Code
from collector.receiver.families import ReceiverFamilies
from collector.receiver.inflate import protobuf, sniff
from collector.receiver.intake import Intake
from collector.receiver.splitter import Splitter
from collector.records.otlp_signals import TRACES
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz, seed
from tests.support.api_stand import Stand, filled
from tests.support.mutation import TEXTS, mutated, not_unicode, otlp_json, torn
from tests.support.received_log import ReceivedLog, spans_of
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


def counted(telemetry: Telemetry, transport: str) -> dict[str, int]:
    """Spans received, by result."""
    value = telemetry.registry.get_sample_value
    name = "spanwise_spans_received_total"
    return {
        each: int(value(name, {"transport": transport, "result": each}) or 0) for each in RESULTS
    }


def damaged(request: bytes, random: Random) -> bytes:
    """Mostly a valid request, sometimes with a text that is not Unicode, sometimes torn."""
    return random.choice(
        (lambda: request, lambda: not_unicode(request, random), lambda: torn(request, random))
    )()


def sent_spans(request: bytes) -> int:
    return len(spans_of(ExportTraceServiceRequest.FromString(request)))


def test_requests_over_grpc_are_counted_once(fuzz: Fuzz) -> None:
    def check(number: int, random: Random) -> None:
        whole = mutated(seed(number), random)
        request = damaged(whole, random)
        log, telemetry = ReceivedLog(), Telemetry()
        intake = Intake(
            log=log,
            max_request=1 << 20,
            splitter=Splitter(max_item=1 << 20),
            families=ReceiverFamilies(telemetry),
            clock=lambda: 0.0,
        )
        taking = intake.take(
            request, sender="", signal=TRACES, transport="grpc", decode=protobuf(sniff)
        )
        answer = asyncio.run(taking)
        result = counted(telemetry, "grpc")
        assert result["accepted"] == len(log.spans())
        if answer.code is Code.OK:
            assert answer.rejected == result["invalid"] + result["too_large"]
        else:
            assert answer.code in (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)
            assert not log.written
        if request == whole:
            assert answer.code is Code.OK
            assert sum(result.values()) == sent_spans(whole)
        assert sum(result.values()) > 0 or answer.code is Code.OK

    fuzz(check, SEEDS, RANDOM)


def test_messages_over_real_grpc_get_a_declared_answer(
    fuzz: Fuzz, served: Served, run: Run
) -> None:
    def check(number: int, random: Random) -> None:
        request = damaged(mutated(seed(number), random), random)
        before = counted(served.telemetry, "grpc")
        said = run(export(served.target, request))
        after = counted(served.telemetry, "grpc")
        assert said.code.name in {"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
        if said.code.name == "OK":
            assert said.rejected == sum(after[e] - before[e] for e in ("invalid", "too_large"))
        else:
            assert after["accepted"] == before["accepted"]

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
        before = counted(served.telemetry, "http")
        given = {"content-type": kind, **{k: v.strip() for k, v in headers.items()}}
        reply = run(client.post(served.url, content=body, headers=given))
        after = counted(served.telemetry, "http")
        assert reply.status_code in STATUSES, reply
        rejected = sum(after[each] - before[each] for each in ("invalid", "too_large"))
        if reply.status_code == 200:
            assert rejected == _rejected(reply)
        else:
            assert after["accepted"] == before["accepted"]

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


PATHS = ("/api/v1/traces/", "/api/v1/sessions/", "/trace?id=", "/session?id=", "/")
QUERIES = (
    "/api/v1/signals?session_id=",
    "/api/v1/signals?trace_id=",
    "/api/v1/signals?cursor=",
    "/api/v1/signals?limit=",
    "/api/v1/sessions?agent=",
    "/api/v1/sessions?service=",
    "/api/v1/agents?cursor=",
    "/api/v1/sessions/s-1?service=",
)


def test_paths_of_the_admin_port_are_answered(fuzz: Fuzz, run: Run, tmp_path: Path) -> None:
    stand = filled(Stand(tmp_path))
    try:

        def check(path: str, text: str) -> None:
            reply = run(stand.get(path + quote(text, errors="replace")))
            assert reply.status_code in {200, 400, 404, 405, 414, 422}, reply
            if reply.headers["content-type"].startswith("application/json"):
                assert reply.json() is not None

        texts = st.sampled_from(TEXTS) | st.text(max_size=30) | st.sampled_from(["s-1", "1" * 32])
        fuzz(check, st.sampled_from((*PATHS, *QUERIES)), texts)
    finally:
        stand.close()
