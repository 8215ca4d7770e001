"""Pages that may send (`receiver.http.cors`), and what else comes to the HTTP port by default: metrics, Langfuse."""

import httpx
import pytest

from collector.config.tree import Http, ReceiverConfig
from tests.support.otlp import body, span
from tests.support.otlp_http import JSON, PROTOBUF, one_span, post
from tests.support.receiving import posted, serving

PAGE = "https://app.example"
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,authorization",
}


async def preflight(url: str, origin: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=False) as client:
        return await client.options(url, headers={**PREFLIGHT, "origin": origin})


async def test_h11_without_cors_a_preflight_is_refused_and_no_page_is_named() -> None:
    """H11."""
    async with serving() as served:
        asked = await preflight(served.url, "http://localhost:3000")
        sent = await post(served.url, one_span(), JSON | {"origin": "http://localhost:3000"})

        assert asked.status_code == 405
        for answer in (asked, sent):
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("origins", [(PAGE,), ("*",)])
async def test_a_page_of_cors_may_ask_and_send(origins: tuple[str, ...]) -> None:
    async with serving(cors=origins) as served:
        asked = await preflight(served.url, PAGE)
        sent = await post(served.url, one_span(), JSON | {"origin": PAGE})

        assert asked.status_code == 200
        assert asked.headers["access-control-allow-headers"] == "content-type,authorization"
        assert sent.status_code == 200
        for answer in (asked, sent):
            assert answer.headers["access-control-allow-origin"] in (PAGE, "*")
        assert served.count("http", "accepted") == 1


async def test_another_page_is_refused_as_before() -> None:
    async with serving(cors=(PAGE,)) as served:
        asked = await preflight(served.url, "https://evil.example")
        sent = await post(served.url, one_span(), JSON | {"origin": "https://evil.example"})

        assert asked.status_code == 400
        assert sent.status_code == 403
        assert "access-control-allow-origin" not in sent.headers
        assert served.log.written == []


async def test_a_refusal_can_be_read_by_the_page() -> None:
    """Without the header a browser tells the page nothing but that it failed."""
    sent, _ = await posted(
        one_span(), JSON | {"origin": PAGE}, cors=(PAGE,), bearer_tokens=("one",)
    )

    assert sent.status_code == 401
    assert sent.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("headers", [None, JSON])
async def test_metrics_are_answered_ok_and_dropped_unread(headers: dict[str, str] | None) -> None:
    async with serving() as served:
        reply = await post(
            served.url.replace("traces", "metrics"), b"\xff no metrics \xff", headers
        )

        assert reply.status_code == 200
        assert reply.content == (b"{}" if headers else b"")
        assert served.dropped("http") == 1
        assert served.log.written == []


async def test_metrics_need_the_token_too() -> None:
    async with serving(bearer_tokens=("one",)) as served:
        reply = await post(served.url.replace("traces", "metrics"), b"")

        assert reply.status_code == 401
        assert served.dropped("http") == 0


async def test_langfuses_path_is_served_by_default() -> None:
    async with serving(paths=ReceiverConfig().http.paths) as served:
        url = served.url.replace("/v1/traces", "/api/public/otel/v1/traces")
        reply = await post(url, body(span()), {**PROTOBUF, "authorization": "Basic eDp5"})

        assert reply.status_code == 200
        assert served.count("http", "accepted") == 1


@pytest.mark.parametrize(
    "wrong", ["app.example", "https://app.example/", "https://u@app.example", "", "**"]
)
def test_cors_takes_origins_as_browsers_send_them(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"expected an origin such as https://app\.example"):
        Http.model_validate({"cors": [wrong]})
