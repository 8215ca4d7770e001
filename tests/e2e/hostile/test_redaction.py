"""Planted secrets: with patterns set they leave nowhere; with content dropped, no name carries them."""

import asyncio
import base64
import gzip
import json
import urllib.error
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.asking import span, trace_id
from tests.support.hostile import PROTOBUF, post
from tests.support.index_content import index_content
from tests.support.openai_server import OpenAiServer
from tests.support.otlp import JSON
from tests.support.otlp_server import grpc_backend
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SECRETS = {
    "email": "jane.roe+orders@example-mail.org",
    "card": "4539 1488 0343 6467",
    "phone": "+49 170 5551234",
    "token": "sk-live-9f8E7d6C5b4A3f2E1d0C9b8A",
    "order": "ORD-774411",
}
NO_CARD = "4539 1488 0343 6468"
"""Its check digit is wrong."""
PATTERNS = {kind: kind for kind in ("email", "card", "phone", "token")} | {"order": "ORD-[0-9]{6}"}
TEXT = " and ".join(SECRETS.values())
GZIP = {"content-encoding": "gzip"}
QUICK = "windows.trace.root_grace=300ms"
PAGE = f"/trace?id={trace_id('s')}"
PATHS = (
    "/",
    "/metrics",
    "/compare?service=desk-bot&agent=desk&baseline=*&candidate=*",
    "/session?id=s",
    PAGE,
    f"/api/v1/traces/{trace_id('s')}",
    "/api/v1/sessions",
    "/api/v1/sessions/s",
    "/api/v1/signals",
    "/api/v1/agents",
    "/evaluators",
    "/health",
)


def planted(text: str, session: str = "s") -> ExportTraceServiceRequest:
    """A trace that carries the text in every place that is free text."""
    root = span(session, f"I am {text}", f"You are {text}")
    root.name = f"chat {text}"
    root.status.message = f"failed for {text}"
    root.attributes.add(key="user.id").value.string_value = text
    root.attributes.add(key=f"note {text}").value.string_value = "x"
    nested = root.attributes.add(key="nested").value.array_value.values.add()
    nested.kvlist_value.values.add(key=f"k {text}").value.string_value = text
    root.attributes.add(key="bytes").value.bytes_value = text.encode()
    event = root.events.add(name=f"event {text}")
    event.attributes.add(key="exception.message").value.string_value = text
    root.links.add(trace_id=b"\1" * 16, span_id=b"\2" * 8).attributes.add(
        key="why"
    ).value.string_value = text
    root.trace_state = f"x={text}"
    tool = span(session, "", child=f"lookup {text}")
    for key in ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"):
        tool.attributes.add(key=key).value.string_value = json.dumps({"who": text, text: 1})
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "desk-bot"
    resource.resource.attributes.add(key="host.owner").value.string_value = text
    scope = resource.scope_spans.add()
    scope.scope.name = f"scope {text}"
    scope.spans.extend([tool, root])
    return request


def leaks(outlets: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The secrets in everything that left the process, by outlet, in any of their forms."""
    forms = {
        kind: {
            text.encode(),
            json.dumps(text)[1:-1].encode(),
            text.replace("+", "%2B").encode(),
            quote(text).encode(),
            base64.b64encode(text.encode()),
        }
        for kind, text in SECRETS.items()
    }
    return [
        (outlet, kind)
        for outlet, data in outlets.items()
        for kind, some in forms.items()
        if any(form in data for form in some)
    ]


def pages(service: Service) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in PATHS:
        try:
            found[path] = service.text(path).encode()
        except urllib.error.HTTPError as error:
            with error:
                found[path] = error.read()
    return found


def scored(service: Service) -> set[str]:
    return {each["session_id"] for each in service.signals()}


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """OTLP/JSON: ids in hex; the `@` of an e-mail address in a tool's arguments escaped, as some encoders do."""
    plain = MessageToDict(request, use_integers_for_enums=True)
    for each in plain["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for item in (each, *each.get("links", ())):
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in item:
                    item[key] = base64.b64decode(item[key]).hex()
    return json.dumps(plain).replace("@", "\\u0040").encode()


def damaged(text: str) -> Sequence[tuple[bytes, dict[str, str]]]:
    """Requests that are refused, each with the text in it."""
    whole = planted(text).SerializeToString()
    return (
        (whole[:-7], PROTOBUF),
        (text.encode(), PROTOBUF),
        (as_json(planted(text))[:-9], JSON),
        (json.dumps({"resourceSpans": text}).encode(), JSON),
        (json.dumps({"resourceSpans": [{"scopeSpans": [{text: 1, "spans": 5}]}]}).encode(), JSON),
        (gzip.compress(whole)[:-20], PROTOBUF | GZIP),
    )


async def test_no_secret_of_a_pattern_leaves_or_reaches_the_disk(tmp_path: Path) -> None:
    text = f"{TEXT} not {NO_CARD}"
    sent = {
        "over HTTP": (planted(text, "over HTTP").SerializeToString(), PROTOBUF),
        "as JSON": (as_json(planted(text, "as JSON")), JSON),
        "packed": (gzip.compress(as_json(planted(text, "packed"))), JSON | GZIP),
    }
    async with grpc_backend() as backend:
        with OpenAiServer() as judge:
            service = Service(
                tmp_path / "data",
                QUICK,
                f"redaction.patterns={json.dumps(PATTERNS)}",
                f"forward={json.dumps({'endpoint': backend.endpoint})}",
                *judge.settings,
            )

            def is_forwarded() -> bool:
                forwarded = b"".join(backend.requests)
                return all(each.encode() in forwarded for each in sent)

            def work() -> dict[str, bytes]:
                with service:
                    send(service.grpc, planted(text).SerializeToString())
                    for each in sent.values():
                        assert post(service.http, *each)[0] == 200
                    answers = [post(service.http, *each) for each in damaged(text)]
                    assert {code for code, _ in answers} == {400}
                    service.wait_for("all are scored", lambda: scored(service) >= {"s", *sent})
                    service.wait_for("it is judged", lambda: judge.requests)
                    service.shown(trace_id("s"), spans=2)
                    service.wait_for("all are forwarded", is_forwarded)
                    return pages(service) | {"answers": b"".join(body for _, body in answers)}

            outlets = await asyncio.to_thread(work)
        outlets["forward"] = b"".join(backend.requests)
    outlets["judge"] = json.dumps(judge.requests).encode()
    outlets["output"] = service.output.read_bytes()
    files = (each for each in (tmp_path / "data").rglob("*") if each.is_file())
    outlets |= {str(each): each.read_bytes() for each in files}

    assert leaks(outlets) == []
    assert outlets["forward"].count(NO_CARD.encode()) > 4
    for outlet in ("forward", "judge", f"/api/v1/traces/{trace_id('s')}", PAGE):
        assert [kind for kind in SECRETS if f"[{kind}]".encode() not in outlets[outlet]] == []


def test_dropped_content_covers_names_that_carry_it(tmp_path: Path) -> None:
    """Names of tools, user ids, event names and attribute keys."""
    with Service(tmp_path / "data", QUICK, "redaction.content=drop") as service:
        send(service.grpc, planted(TEXT).SerializeToString())
        service.wait_for("it is scored", lambda: scored(service))
        service.shown(trace_id("s"), spans=2)

        outlets = pages(service)
        for file in ("recording", "case"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                service.text(f"/trace/{file}?id={trace_id('s')}")
            outlets[file] = refused.value.read()
            assert b"There is nothing to download" in outlets[file]
    outlets["signals"] = (tmp_path / "data" / "signals.jsonl").read_bytes()
    outlets["output"] = service.output.read_bytes()
    outlets["index"] = index_content(tmp_path / "data" / "index")
    assert b"agent_reliability" in outlets["index"]

    assert leaks(outlets) == []
