"""What comes to the wrong port is answered with the right one, counted, and logged once."""

import grpc
import pytest

from tests.support.http2 import GOAWAY, PREFACE, SETTINGS, frame
from tests.support.otlp import body, span
from tests.support.otlp_http import post, status_of
from tests.support.receiving import Served, connected, export, posted, serving


def misdirected(served: Served, reason: str) -> float:
    return served.counted("requests_misdirected_total", transport="http", reason=reason)


def answered(served: Served, code: str) -> float:
    return served.counted("requests_total", transport="http", code=code)


@pytest.mark.parametrize("path", ["/v1/traces/", "//v1/traces", "/v1//traces//"])
async def test_slashes_too_many_do_no_harm(path: str) -> None:
    async with serving() as served:
        reply = await post(served.url.removesuffix("/v1/traces") + path, body(span()))

        assert reply.status_code == 200
        assert len(served.log.spans()) == 1


@pytest.mark.parametrize("path", ["/", "/v1/traces/v1/traces", "/v1/trace", "/v2/traces"])
async def test_another_path_is_answered_with_the_right_one(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as served:
        base = served.url.removesuffix("/v1/traces")
        replies = [await post(base + path, body(span())) for _ in range(2)]

        assert {each.status_code for each in replies} == {404}
        assert "/v1/traces" in status_of(replies[0]).message
        assert (misdirected(served, "path"), answered(served, "NOT_FOUND")) == (2, 2)
        assert caplog.text.count("The HTTP port got a request") == 1


async def test_a_form_that_cannot_be_read_is_counted() -> None:
    reply, served = await posted(b"x", headers={"content-type": "text/plain"})

    assert reply.status_code == 415
    assert (misdirected(served, "media_type"), answered(served, "INVALID_ARGUMENT")) == (1, 1)


async def test_http2_is_answered_with_the_port_of_grpc() -> None:
    begin = PREFACE + frame(SETTINGS, 0, 0, b"")
    async with serving() as served, connected(served.receiver.http_port, begin) as (reader, _):
        answer = await reader.read()

        assert (answer[3], answer[12]) == (SETTINGS, GOAWAY)
        assert f"gRPC is served on port {served.receiver.grpc_port}".encode() in answer
        assert (misdirected(served, "http2"), answered(served, "UNIMPLEMENTED")) == (1, 1)


async def test_a_grpc_exporter_on_the_http_port_is_answered_with_the_mistake() -> None:
    async with serving() as served:
        said = await export(f"127.0.0.1:{served.receiver.http_port}", body(span()))

        assert said.code is grpc.StatusCode.UNIMPLEMENTED
        assert f"gRPC is served on port {served.receiver.grpc_port}" in said.message
        assert misdirected(served, "http2") == 1
