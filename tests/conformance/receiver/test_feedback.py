"""`POST /v1/feedback` on the receiver's port: durable before it is answered, item by item."""

import gzip
import json
from typing import Any

import httpx
import pytest

from collector.log.port import FEEDBACK
from collector.records.feedback import FeedbackRules, decode_feedback
from tests.support.dialect_spans import key_values
from tests.support.faulty_log import unavailable
from tests.support.otlp import body, post, request, span
from tests.support.receiving import Served, serving

TRACE = "0af7651916cd43dd8448eb211c80319c"
THUMB = {"trace_id": TRACE, "name": "thumb", "value": False, "comment": "wrong city"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
RULES = FeedbackRules()


def url(served: Served) -> str:
    return served.url.replace("/v1/traces", "/v1/feedback")


async def send(served: Served, content: Any, **headers: str) -> httpx.Response:
    """As `curl -d` sends it."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return await post(url(served), raw, headers={**FORM, **headers})


def kept(served: Served) -> list[str]:
    """The comments and names of what the log has."""
    written = [each for each in served.log.written if each.position.topic == FEEDBACK]
    found = [decode_feedback(each.value) for each in written]
    return [each.comment or each.name for each in found]


def counted(served: Served, result: str) -> float:
    return served.counted("feedback_received_total", transport="http", result=result)


async def test_a_thumb_is_answered_once_the_log_has_it() -> None:
    async with serving(feedback=RULES) as served:
        reply = await send(served, THUMB)

        assert (reply.status_code, reply.json()) == (200, {"accepted": 1, "rejected": []})
        assert reply.headers["content-type"] == "application/json"
        assert kept(served) == ["wrong city"]
        assert counted(served, "accepted") == 1


async def test_what_cannot_be_read_loses_nothing_else() -> None:
    several = [THUMB, {"name": "stars"}, {**THUMB, "value": "yes"}, {**THUMB, "name": "tone"}]
    async with serving(feedback=RULES) as served:
        reply = await send(served, {"feedback": several})

        said = reply.json()
        assert (reply.status_code, said["accepted"]) == (200, 2)
        assert [each["index"] for each in said["rejected"]] == [1, 2]
        assert "trace_id, session_id and task_id" in said["rejected"][0]["message"]
        assert len(kept(served)) == 2
        assert (counted(served, "accepted"), counted(served, "invalid")) == (2, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "neither a JSON object nor"),
        ({"name": "thumb"}, "expected one of trace_id"),
        ({"feedback": [THUMB] * 1_001}, "1001 items; at most 1000"),
    ],
)
async def test_a_request_of_which_nothing_can_be_kept_is_a_400(content: Any, message: str) -> None:
    async with serving(feedback=RULES) as served:
        reply = await send(served, content)

        assert reply.status_code == 400
        assert message in reply.json()["error"]["message"]
        assert kept(served) == []


async def test_a_thousand_at_once_compressed() -> None:
    several = {"feedback": [{**THUMB, "id": str(n)} for n in range(1_000)]}
    async with serving(feedback=RULES) as served:
        packed = gzip.compress(json.dumps(several).encode())
        reply = await send(served, packed, **{"content-encoding": "gzip"})

        assert reply.json() == {"accepted": 1_000, "rejected": []}
        assert len(kept(served)) == 1_000


async def test_the_sender_learns_that_the_log_is_away() -> None:
    async with serving(feedback=RULES) as served:
        served.log.write_failures = unavailable(1)
        refused = await send(served, THUMB)
        again = await send(served, THUMB)

        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert again.status_code == 200
        assert (counted(served, "refused"), counted(served, "accepted")) == (1, 1)


async def test_it_needs_the_receivers_token() -> None:
    token = "a-token-of-32-characters-at-least"
    async with serving(feedback=RULES, bearer_tokens=[token]) as served:
        without = await send(served, THUMB)
        with_it = await send(served, THUMB, authorization=f"Bearer {token}")

        assert without.status_code == 401
        assert without.headers["www-authenticate"] == "Bearer"
        assert with_it.status_code == 200
        assert counted(served, "unauthenticated") == 1


@pytest.mark.parametrize("beside_damage", [False, True])
async def test_what_spans_say_is_written_with_them(*, beside_damage: bool) -> None:
    """A damaged span costs no other span, and at most what the spans beside it say."""
    sent = span()
    said = {"annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "good"}
    sent.attributes.extend(key_values(said))
    whole = request(sent)
    if beside_damage:
        whole.resource_spans[0].scope_spans.add().spans.add(span_id=b"y" * 8, name="damaged")
    raw = whole.SerializeToString().replace(b"damaged", b"\xff" * 7)
    async with serving(feedback=RULES) as served:
        reply = await post(served.url, raw)
        await post(served.url, body(span()))

        assert reply.status_code == 200
        topics = [each.position.topic for each in served.log.written]
        assert [each for each in topics if each == "spans"] == ["spans"] * 2
        assert counted(served, "invalid") + counted(served, "accepted") == 1
        if not beside_damage:
            assert topics == ["spans", "feedback", "spans"]
            assert kept(served) == ["tone"]


async def test_scores_are_one_a_list_or_a_named_list_and_a_bad_one_loses_only_itself() -> None:
    score = {"trace_id": TRACE, "name": "tone", "value": 0.7, "explanation": "fine", "version": "2"}
    bad = [{"name": "tone"}, {**score, "value": "NaN"}, {**score, "kind": "human"}]
    async with serving(feedback=RULES) as served:
        path = url(served).replace("/v1/feedback", "/v1/evaluations")
        for said, accepted, rejected in (
            (score, 1, []),
            ([score, *bad], 1, [1, 2, 3]),
            ({"evaluations": [score, score]}, 2, []),
        ):
            reply = await post(path, json.dumps(said).encode(), headers=FORM)
            assert (reply.status_code, reply.json()["accepted"]) == (200, accepted)
            assert [each["index"] for each in reply.json()["rejected"]] == rejected

        found = {decode_feedback(each.value) for each in served.log.written}
        assert {each.evaluation and each.evaluation.version for each in found} == {"2"}
        assert len({each.id for each in found}) == 1, "the same score, sent again"
