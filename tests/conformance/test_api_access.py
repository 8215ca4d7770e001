"""Who may read what at the admin port, and what is refused."""

import base64

import pytest

from evaluators.model import AgentStep
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand, filled
from tests.support.index_content import index_content


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/nothing", 404, "not_found"),
        ("/api/v1/sessions/none", 404, "not_found"),
        ("/api/v1/traces/none", 404, "not_found"),
        ("/api/v1/sessions?limit=0", 422, "invalid_request"),
        ("/api/v1/sessions?limit=501", 422, "invalid_request"),
        ("/api/v1/signals?limit=many", 422, "invalid_request"),
        ("/api/v1/agents?cursor=%25%25", 422, "invalid_request"),
        ("/api/v1/sessions?servce=x", 422, "invalid_request"),
    ],
)
async def test_errors_have_one_shape(stand: Stand, path: str, status: int, kind: str) -> None:
    answer = await stand.get(path)

    assert answer.status_code == status
    assert answer.json()["error"]["type"] == kind
    assert answer.json()["error"]["message"]


async def test_another_method_is_405(stand: Stand) -> None:
    async with stand.client() as client:
        answer = await client.post("/api/v1/agents")

    assert (answer.status_code, answer.json()["error"]["type"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


OPEN = ("/metrics", "/healthz", "/readyz")
CLOSED = (
    *("/", "/compare", "/evaluators", "/health", "/session", "/sessions", "/trace", "/nowhere"),
    *("/trace/case", "/trace/recording", "/config/available-metrics", "/api/v1/agents"),
    *("/api/v1/sessions", "/api/v1/signals", "/api/v1/signals/stream"),
)


async def test_beyond_loopback_without_a_token_only_metrics_and_health_answer(
    new_stand: NewStand,
) -> None:
    stand = new_stand("admin.host=0.0.0.0")
    codes = {path: (await stand.get(path)).status_code for path in (*OPEN, *CLOSED)}
    refusal = (await stand.get("/")).json()["error"]

    assert codes == {"/metrics": 200, "/healthz": 200, "/readyz": 503} | dict.fromkeys(CLOSED, 403)
    assert refusal["type"] == "forbidden"
    assert "admin.bearer_tokens" in refusal["message"]


async def test_a_token_opens_and_its_lack_is_401(new_stand: NewStand) -> None:
    stand = new_stand("admin={host: 0.0.0.0, bearer_tokens: [first, second]}")
    basic = base64.b64encode(b"anyone:second").decode()
    codes = [
        (await stand.get("/api/v1/agents", **headers)).status_code
        for headers in (
            {},
            {"authorization": "Bearer third"},
            {"authorization": "Bearer "},
            {"authorization": "Basic !!"},
            {"authorization": "Bearer first"},
            {"authorization": "bearer second"},
            {"authorization": f"Basic {basic}", "host": "monitor.example"},
        )
    ]
    challenge = (await stand.get("/")).headers["www-authenticate"]
    health = (await stand.get("/healthz")).status_code

    assert codes == [401, 401, 401, 401, 200, 200, 200]
    assert "Basic" in challenge
    assert health == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:4390", 200),
        ("localhost", 200),
        ("[::1]:4390", 200),
        ("spanwise.localhost:1", 200),
        ("evil.example", 403),
        ("localhost.evil.example:4390", 403),
        ("127.0.0.1.evil.example", 403),
    ],
)
async def test_a_foreign_name_for_loopback_reads_nothing(
    stand: Stand, host: str, status: int
) -> None:
    assert (await stand.get("/api/v1/agents", host=host)).status_code == status
    assert (await stand.get("/metrics", host=host)).status_code == 200


async def test_dropped_content_is_nowhere(new_stand: NewStand) -> None:
    stand = new_stand("redaction.content=drop")
    secret = "secret text"
    step = AgentStep(span_id="1" * 16, agent="writer", output=secret)
    of = make.trace(1, error=secret, system=secret, input=secret, steps=(step,))
    stand.take_traces(of)
    taken = stand.take_signals(
        make.signal(of, explanation=secret),
        make.session_signal(of, "agent_reliability", 0.5, explanation=secret),
    )

    texts = [each.json.decode() for each in taken.signals]
    for path in (
        "/",
        "/api/v1/signals",
        "/api/v1/sessions/s-1",
        f"/api/v1/traces/{1:032x}",
        "/session?id=s-1",
        f"/trace?id={1:032x}",
    ):
        answer = await stand.get(path)
        assert answer.status_code == 200
        texts.append(answer.text)
    stand.close()

    for text in texts:
        for hidden in (secret, "rain", "answer 1", "Oslo"):
            assert hidden not in text
    held = index_content(stand.folder)
    assert b"step_efficiency" in held
    assert secret.encode() not in held


async def test_dropping_content_later_empties_the_index(new_stand: NewStand) -> None:
    stand = filled(new_stand())
    kept: list[int] = []
    for settings in ([], ["redaction.content=drop"]):
        stand.close()
        stand = new_stand(*settings, folder=stand.folder)
        kept.append(len(await stand.items("sessions")))

    assert kept == [2, 0]


@pytest.mark.parametrize("kind", ["trace", "session"])
@pytest.mark.parametrize("query", ["", "?id="])
async def test_a_view_without_an_id_says_what_is_wrong(stand: Stand, kind: str, query: str) -> None:
    reply = await stand.get(f"/{kind}{query}")

    assert reply.status_code == 400
    assert reply.headers["content-type"].startswith("text/html")
    assert f"/{kind}?id=..." in reply.text


async def test_spans_that_another_program_wrote_to_the_log_are_redacted(
    new_stand: NewStand,
) -> None:
    stand = new_stand("redaction.patterns={mail: email, weather: rain}")
    stand.take_traces(make.trace(1, service="bot of jane@example.org"))

    spans = (await stand.json(f"traces/{1:032x}"))["spans"]

    assert spans[0]["resource"]["service.name"].startswith("bot of [mail]#")
    assert spans[0]["attributes"]["gen_ai.tool.call.result"] == "[weather] <b>soon</b>"
