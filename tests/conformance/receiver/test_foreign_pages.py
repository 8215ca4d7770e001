"""A web page cannot post spans while no token is set."""

from tests.support.otlp_http import JSON, one_span, post
from tests.support.receiving import posted, serving
from tests.support.table import for_each


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


async def test_with_a_token_neither_matters() -> None:
    headers = {"origin": "https://a.example", "host": "a.example", "authorization": "Bearer t"}
    async with serving(bearer_tokens=("t",)) as served:
        assert (await post(served.url, one_span(), JSON | headers)).status_code == 200


async def test_an_address_of_the_network_has_any_name_but_no_foreign_page() -> None:
    async with serving(host="0.0.0.0") as served:
        named = await post(served.url, one_span(), JSON | {"host": "spanwise:4318"})
        foreign = await post(served.url, one_span(), JSON | {"origin": "https://evil.example"})

    assert (named.status_code, foreign.status_code) == (200, 403)
