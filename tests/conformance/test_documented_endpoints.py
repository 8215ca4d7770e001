"""Each endpoint and parameter that a page names, at the edges of its type, alone and beside each other one."""

import itertools
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
import pytest

from collector.config.tree import Config
from collector.records.feedback import FeedbackRules
from tests.support import documented
from tests.support.api_stand import Stand
from tests.support.documented_edges import BODIES, EDGES, GATE, READ, STREAM, TAKEN, requests
from tests.support.receiving import serving
from tests.support.table import for_each

ELSEWHERE = {
    "/agents/": "the beginning of CloudEvents' `ce_source`",
    "/api/public/ingestion": "Langfuse's",
    "/api/public/otel/v1/traces": "an example of receiver.http.paths",
    "/api/v1": "all of them",
    "/api/v2/alerts": "Alertmanager's",
    "/data": "a folder",
    "/spanwise": "an example of admin.base_path",
    "/tmp": "a folder",
    "/traces": "an example of receiver.http.paths",
    "/usr/share/spanwise/sbom.cdx.json": "a file of the image",
    "/v1": "of a judge's server",
}


def test_every_endpoint_of_the_pages_is_tried() -> None:
    shown = {urlsplit(each).path for each in documented.paths()}

    assert shown - {*READ, STREAM, GATE, *TAKEN} == {*ELSEWHERE}


def test_every_parameter_of_the_pages_is_tried() -> None:
    for each in documented.paths():
        path, query = urlsplit(each).path, urlsplit(each).query
        names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
        assert names <= {*READ.get(path, ())}, each
    written = {found[1] for each in documented.code() if (found := re.match(r"(\w+)=$", each.text))}
    assert written <= EDGES.keys(), "give it its edges"
    assert {name for names in READ.values() for name in names} <= EDGES.keys()


@pytest.fixture
async def client(stand: Stand) -> AsyncIterator[httpx.AsyncClient]:
    stand.health.started = stand.health.has_worker = True
    async with stand.client() as made:
        yield made


@for_each("path", READ)
async def test_no_parameter_of_what_is_read_makes_a_fault(
    path: str, client: httpx.AsyncClient
) -> None:
    places = [path]
    if "{id}" in path:
        places = [path.replace("{id}", quote(edge, safe="")) for edge in EDGES["id"] if edge]
    for place, query in itertools.product(places, requests(path)):
        reply = await client.get(f"{place}?{query}")
        assert reply.status_code < 500, (place, query[:200], reply.text[:300])
        if path.startswith("/api/v1") and "csv" not in reply.headers["content-type"]:
            assert ("error" in reply.json()) == (reply.status_code >= 400), (query, reply.text)


async def test_no_body_of_the_gate_makes_a_fault(client: httpx.AsyncClient) -> None:
    for body, query in itertools.product(BODIES, ("", *requests("/api/v1/compare"))):
        reply = await client.post(f"{GATE}?{query}", content=body)
        assert reply.status_code < 500, (body, query, reply.text)


@pytest.mark.parametrize("path", TAKEN)
async def test_no_body_of_what_is_sent_makes_a_fault(path: str) -> None:
    medias = ("application/json", "application/x-protobuf", "text/plain", "")
    async with (
        serving(feedback=FeedbackRules.of(Config())) as served,
        httpx.AsyncClient(
            base_url=served.url.removesuffix("/v1/traces"), trust_env=False, verify=False
        ) as sender,
    ):
        for body, media, coding in itertools.product(BODIES, medias, ("", "gzip", "br")):
            headers = {"content-type": media, "content-encoding": coding}
            sent = {name: value for name, value in headers.items() if value}
            reply = await sender.post(path, content=body, headers=sent)
            assert reply.status_code < 500, (path, media, coding, body[:40], reply.text)
