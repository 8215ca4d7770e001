"""What the pages say of the service: its health, findings of the doctor, and addresses that do not exist."""

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from httpx import ASGITransport, AsyncClient
from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from collector.api.about import About
from collector.api.admin import error_handlers
from collector.api.answers import RequestRefused
from collector.api.families import ApiFamilies
from collector.api.findings import Findings
from collector.api.off_loop import OffLoop
from collector.api.page.service_pages import health_view
from collector.api.query import Query
from collector.api.traces import Traces
from collector.api.vitals import PREFIX, Vitals, numbers, vitals
from collector.base.telemetry import Telemetry
from collector.forward.families import ForwardFamilies
from collector.log.families import LogFamilies
from collector.records.codec import encode
from collector.records.keeping import Decision, KeepingRecord
from collector.records.sent_trace import SentTrace, decode_sent
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand, filled
from tests.support.table import for_each

NOTHING: Mapping[str, Any] = {"stacks": (), "unscored": (), "judge": None}
LOOKED = {"looked_at": 0, "of": 0}


def sample(name: str, value: float, **labels: str) -> Sample:
    return Sample(PREFIX + name, labels, value)


def shown(*samples: Sample, found: Mapping[str, Any] = NOTHING, now: float = 1_000.0) -> Any:
    of = vitals(numbers(samples), now=now)
    return health_view(of, {**LOOKED, **found}, state="ready", roles=("publish",))


WAS_SET = "the machine's clock, which was set; scoring goes on by elapsed time"
GO_TO = "traces go to /v1/traces"
ELSEWHERE = "set the endpoint or the protocol of that sender"


def test_what_keeps_pace_is_no_problem() -> None:
    view = shown(
        sample("log_lag_records", 12, group="scoring", topic="traces"),
        sample("log_lag_seconds", 59, group="scoring", topic="traces"),
        sample("signals_total", 40, sink="jsonl", result="acked"),
        sample("signals_total", 2, sink="jsonl", result="retried"),
        sample("room_failures_total", 0, room="api", reason="bug"),
    )

    (sink,) = view["sinks"]
    assert view["problems"] == []
    assert view["lag"] == [{"group": "scoring", "topic": "traces", "records": 12, "seconds": 59}]
    assert (sink["acked"], sink["retried"], sink["lost"]) == (40, 2, 0)


@for_each(
    ("samples", "problem"),
    [
        (
            [
                sample("log_lag_records", 1_200, group="sink.jsonl", topic="signals"),
                sample("log_lag_seconds", 61, group="sink.jsonl", topic="signals"),
            ],
            "sink.jsonl is behind by 1,200 records of topic signals, the oldest waits for 1 min 1 s",
        ),
        ([sample("signals_total", 3, sink="otlp", result="lost")], "sink otlp lost 3 signals"),
        (
            [
                sample("outbox_records", 3, sink="otlp"),
                sample("outbox_oldest_timestamp_seconds", 100, sink="otlp"),
            ],
            "sink otlp has not delivered a signal for 15 min 0 s",
        ),
        (
            [sample("log_gap_records_total", 5, topic="traces")],
            "5 records expired unread: a larger log, or more workers",
        ),
        ([sample("log_time_ahead_seconds", 600)], f"log time is 10 min 0 s ahead of {WAS_SET}"),
        ([sample("log_time_ahead_seconds", -7_200)], f"log time is 2 h 0 min behind {WAS_SET}"),
        (
            [sample("room_failures_total", 2, room="sink.otlp", reason="io")],
            "room sink.otlp failed 2 times and was started again: the log of the service says why",
        ),
        (
            [sample("requests_misdirected_total", 3, transport="http", reason="path")],
            f"3 requests came to a path of the HTTP port that serves nothing ({GO_TO}): {ELSEWHERE}",
        ),
        (
            [sample("connections_closed_total", 1, listener="grpc", reason="http1")],
            f"1 request came to the gRPC port in HTTP/1: {ELSEWHERE}",
        ),
        (
            [sample("worker_restarts_total", 1, reason="hung")],
            "workers were replaced 1 time (hung)",
        ),
        (
            [
                sample("judge_budget_limit_usd", 5, budget="day"),
                sample("judge_budget_remaining_usd", 0, budget="day"),
            ],
            "the judge's budget of $5.00 is used up for today",
        ),
    ],
)
def test_what_needs_attention_is_said_in_words(samples: Sequence[Sample], problem: str) -> None:
    assert shown(*samples)["problems"] == [problem]


FINDING: Mapping[str, Any] = {
    "lack": "no_content",
    "says": None,
    "traces": 3,
    "stops": ("coherence", "confidence"),
    "example": "ab" * 16,
    "advice": [{"setting": "EXPORT_CONTENT=true", "note": ""}],
}
STACK: Mapping[str, Any] = {
    **dict.fromkeys(("scopes", "sdks"), ()),
    "service": "shop",
    "dialects": ("genai",),
    "traces": 3,
    "turns": 3,
    "findings": [FINDING, {**FINDING, "lack": "no_tool_results"}],
}

FOUND: Mapping[str, Any] = {
    "stacks": [STACK],
    "unscored": [{"service": "shop", "sessions": 2, "of": 3, "why": "no content", "example": "s"}],
    "judge": {"failed": 2, "verdicts": 4, "type": "timeout", "message": "m", "setting": "s"},
}
"""What a doctor finds who finds everything."""


async def test_what_the_doctor_finds_needs_attention_and_is_on_the_page(
    new_stand: NewStand,
) -> None:
    view = shown(found=FOUND)
    stand = new_stand(about=About(diagnose=lambda notes, sessions: FOUND))
    ForwardFamilies(stand.telemetry).traces.labels("lost", "expired").inc(1234)
    page = await stand.text("/health")

    assert view["problems"] == [
        "the judge fails: 2 of 4 verdicts, the newest with timeout",
        "shop: no score for 2 of 3 sessions, no content",
        "shop: no content, no tool results; 2 evaluators judge without that",
    ]
    (advice,) = view["stacks"][0]["advice"]
    assert advice["fixes"] == ["no_content", "no_tool_results"]
    for said in (
        view["problems"][2],
        "<code>EXPORT_CONTENT=true</code>",
        "2 of 4 verdicts of the judge failed, the newest with timeout: m",
        "Lost since the start: 1,234 expired.",
    ):
        assert said in page


def test_only_the_families_of_the_page_are_collected() -> None:
    telemetry = Telemetry(CollectorRegistry(auto_describe=True))
    LogFamilies(telemetry).bytes.labels("spans").set(7)
    asked: list[str] = []
    telemetry.gauge("costly", "Never asked for.").set_function(lambda: asked.append("!") or 0.0)

    now = Vitals(telemetry.registry, clock=lambda: 0.0).now()

    assert now["storage"] == [{"name": "log, spans", "bytes": 7.0, "limit": None}]
    assert asked == []


@for_each("address", ["/nowhere", "/trace/", "/sessionz", "/a/b/c", "/%3Cb%3E"])
async def test_an_unknown_address_is_a_page_for_browsers(stand: Stand, address: str) -> None:
    answer = await stand.get(address, accept="text/html,*/*;q=0.8")

    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.text
    assert 'href="/evaluators"' in answer.text
    assert "<b>" not in answer.text.partition("<main")[2].partition("</main>")[0]


@for_each(
    "address,accept",
    [("/nowhere", "*/*"), ("/api/v1/nothing", "text/html"), ("/api/", "text/html")],
)
async def test_an_unknown_address_is_an_error_for_programs_and_a_refusal_a_page_for_browsers(
    stand: Stand, address: str, accept: str
) -> None:
    answer = await stand.get(address, accept=accept)
    async with stand.client() as client:
        refusal = await client.post("/health", headers={"accept": "text/html"})

    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")
    assert refusal.status_code == 405
    assert "<h1>This cannot be shown</h1>" in refusal.text
    assert "default-src 'none'" in refusal.headers["content-security-policy"]


async def test_a_page_that_is_busy_says_when_to_come_back() -> None:
    handlers = error_handlers(lambda code, said: PlainTextResponse(said, status_code=code))

    async def refuse(_: Request) -> None:
        raise RequestRefused(503, "too many", headers={"retry-after": "5"})

    app = Starlette(routes=[Route("/", refuse)], exception_handlers=handlers)
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        page = await client.get("/", headers={"accept": "text/html"})
        refusal = await client.get("/")

    assert (page.status_code, page.text, page.headers["retry-after"]) == (503, "too many", "5")
    assert (refusal.json()["error"]["message"], refusal.headers["retry-after"]) == ("too many", "5")


async def test_a_trace_leads_to_those_beside_it_in_its_session(filled_stand: Stand) -> None:
    pages = [await filled_stand.text(f"/trace?id={n:032x}") for n in (1, 2, 3)]

    links = [re.findall(r'rel="(\w+)" href="/trace\?id=0*(\d)"', page) for page in pages]
    assert links == [[("next", "2")], [("prev", "1")], []]


def decided(*numbers: int, at: float, reason: str = "", agent: str = "planner") -> bytes:
    """As the owner of the traces writes it; without a reason they are dropped."""
    decisions: list[Decision] = []
    for number in numbers:
        sent = decode_sent(make.trace_value(make.trace(number, agent=agent)))
        assert isinstance(sent, SentTrace)
        closed = sent.closed(key=b"", offset=0, failed=False)
        decisions.append(Decision(closed, at, reason or "share", bool(reason)))
    return encode(KeepingRecord(decisions=decisions))


async def test_what_was_forwarded_is_on_the_page_of_the_trace_and_of_health(stand: Stand) -> None:
    now = stand.time
    late = decided(3, at=now, reason="failed_late")
    stand.take_traces(
        *map(make.trace, range(1, 7)),
        make.trace(7, agent="writer", session_id="s-2"),
        decided(1, 2, at=now, reason="failed"),
        decided(3, 4, 5, at=now),
        decided(6, at=now - 86_401, reason="slow"),
        decided(7, at=now, reason="new_version", agent="writer"),
        *(late, late),  # a record that is read again changes nothing
    )

    health = await stand.text("/health")
    pages = [await stand.text(f"/trace?id={n:032x}") for n in (1, 3, 4)]

    row = r"<tr><td>(.*?) <span.*?number\">(\d+)</td><td>(.*?)</td>.*?(\d+)<"
    assert re.findall(row, health) == [
        ("all agents", "4", "2 failed, 1 failed late, 1 new version", "2"),
        ("planner", "3", "2 failed, 1 failed late", "2"),
        ("writer", "1", "1 new version", "0"),
    ]
    shown = [re.findall("<dt>Forwarded</dt><dd>(.*?), by <code>(.*?)</code>", p) for p in pages]
    assert shown == [[("sent", "failed")], [("sent", "failed_late")], [("not sent", "share")]]


class Looks:
    """An examiner that remembers what it has looked at."""

    def __init__(self) -> None:
        self.at: list[str] = []
        self.about = About(examine=self._examine, diagnose=self._diagnose)

    def _examine(self, trace: Mapping[str, Any], _: object) -> object:
        self.at.append(trace["trace_id"])
        return trace["agent"]

    def _diagnose(self, notes: Sequence[object], sessions: Sequence[Mapping[str, Any]]) -> Any:
        assert {each["agent"] for each in sessions} >= set(notes)
        return NOTHING


NEWEST = [make.trace(3).trace_id, make.trace(2).trace_id]
"""Of each agent of `filled`."""


async def test_the_newest_trace_of_every_agent_is_looked_at_once(new_stand: NewStand) -> None:
    looks = Looks()
    stand = filled(new_stand(about=looks.about))

    for _ in range(2):
        assert (await stand.get("/health")).status_code == 200
        stand.time += 61

    assert sorted(looks.at) == sorted(NEWEST)


async def test_what_a_request_has_no_time_for_the_next_one_looks_at(new_stand: NewStand) -> None:
    looks = Looks()
    stand = filled(new_stand(about=looks.about))
    query, off_loop = Query(stand.api._index), OffLoop(ApiFamilies(Telemetry()))
    findings = Findings(
        about=looks.about,
        query=query,
        traces=Traces(log=stand.log, query=query, off_loop=off_loop, content=True),
        off_loop=off_loop,
        clock=lambda: stand.time,
        monotonic=count(0.0, 10.0).__next__,
    )

    answers = [await findings.now() for _ in range(3)]

    assert [(each["looked_at"], each["of"]) for each in answers] == [(1, 2), (2, 2), (2, 2)]
    assert sorted(looks.at) == sorted(NEWEST)
