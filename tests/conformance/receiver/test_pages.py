"""Web pages that may send, and those that may not: H11, `receiver.http.cors`, a foreign name for this machine."""

import json

import httpx
import pytest

from collector.config.tree import Http
from collector.records.feedback import FeedbackRules
from tests.support.otlp import ID, JSON, one_span, post
from tests.support.receiving import posted, serving
from tests.support.table import for_each

PAGE = "https://app.example"
THUMB = json.dumps({"trace_id": ID, "name": "thumb", "value": True}).encode()


@for_each(
    ("header", "value", "status"),
    [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "http://127.0.0.1.evil.example", 403),
        ("origin", "http://[broken", 403),
        ("origin", "http://localhost:3000", 200),
        ("origin", "http://[::1]:1", 200),
        ("host", "evil.example", 403),
        ("host", "localhost:4318", 200),
        ("host", "[::1]:4318", 200),
        ("host", "host.docker.internal:4318", 200),
        ("host", "Host.Containers.Internal", 200),
        ("host", "host.docker.internal.evil.example", 403),
    ],
)
async def test_only_pages_and_names_of_this_machine_may_send(
    header: str, value: str, status: int
) -> None:
    reply, served = await posted(one_span(), JSON | {header: value})

    assert reply.status_code == status
    assert served.count("http", "accepted") == (status == 200)
    assert served.count("http", "unauthenticated") == (status == 403)
    assert "access-control-allow-origin" not in reply.headers


async def test_with_a_token_neither_matters() -> None:
    headers = {"origin": "https://a.example", "host": "a.example", "authorization": "Bearer t"}
    reply, _ = await posted(one_span(), JSON | headers, bearer_tokens=("t",))

    assert reply.status_code == 200


async def test_an_address_of_the_network_has_any_name_but_no_foreign_page() -> None:
    async with serving(host="0.0.0.0") as served:
        named = await post(served.url, one_span(), JSON | {"host": "spanwise:4318"})
        foreign = await post(served.url, one_span(), JSON | {"origin": "https://evil.example"})

    assert (named.status_code, foreign.status_code) == (200, 403)


@for_each(
    ("cors", "origin", "asked", "sent"),
    [
        ((), "http://localhost:3000", 405, 200),
        ((PAGE,), PAGE, 200, 200),
        (("*",), PAGE, 200, 200),
        ((PAGE,), "https://evil.example", 400, 403),
    ],
)
async def test_a_page_of_cors_may_ask_and_send_and_no_other_is_named(
    cors: tuple[str, ...], origin: str, asked: int, sent: int
) -> None:
    wanted = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,authorization",
    }
    rules = FeedbackRules()
    async with (
        serving(cors=cors, feedback=rules) as served,
        httpx.AsyncClient(verify=False, headers={"origin": origin}) as client,
    ):
        preflight = await client.options(served.url, headers=wanted)
        spans = await client.post(served.url, content=one_span(), headers=JSON)
        thumb = await client.post(
            served.url.replace("traces", "feedback"), content=THUMB, headers=JSON
        )

    replies = (preflight, spans, thumb)
    assert [each.status_code for each in replies] == [asked, sent, sent]
    if asked == 200:
        assert preflight.headers["access-control-allow-headers"] == "content-type,authorization"
    for each in replies:
        named = each.headers.get("access-control-allow-origin")
        assert named in ((PAGE, "*") if asked == 200 else (None,))


async def test_a_refusal_can_be_read_by_the_page() -> None:
    """Without the header a browser tells the page nothing but that it failed."""
    sent, _ = await posted(
        one_span(), JSON | {"origin": PAGE}, cors=(PAGE,), bearer_tokens=("one",)
    )

    assert sent.status_code == 401
    assert sent.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize(
    "wrong", ["app.example", "https://app.example/", "https://u@app.example", "", "**"]
)
def test_cors_takes_origins_as_browsers_send_them(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"expected an origin such as https://app\.example"):
        Http.model_validate({"cors": [wrong]})
