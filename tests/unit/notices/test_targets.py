"""What each kind of target is sent: as its vendor documents it, within its limits, without markup of others."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from collector.notices.alarms import Alarms
from collector.notices.conditions import GROWTHS, found_in
from collector.notices.notice import Notice
from collector.notices.series import Series, SeriesSample
from collector.notices.targets.alertmanager import Alertmanager
from collector.notices.targets.pagerduty import PagerDuty
from collector.notices.targets.port import TargetKind
from collector.notices.targets.slack import Slack
from collector.notices.targets.teams import LARGEST, Teams
from collector.notices.targets.webhook import Webhook
from tests.support.notices import PLACE, notice

NOW = 1_700_000_060.0
HOSTILE = "<!channel> *bold* <http://evil|here> [x](http://evil) & `c` _i_"
FIRING = notice()
RESOLVED = notice(state="resolved", end=1_700_000_300.0)
LONG = notice(summary="s" * 9000, description="d" * 90_000)


def body(kind: TargetKind, *notices: Notice) -> Any:
    """As it goes over the wire."""
    return msgspec.json.decode(msgspec.json.encode(kind.request(notices, NOW).body))


def test_a_drop_of_a_score_of_others_is_told_as_one_of_ours() -> None:
    """From the gauges of its evaluator alone, to each target in its own form."""
    of = {**PLACE, "evaluator": "ragas_faithfulness", "scope": "trace"}
    samples = [
        SeriesSample("spanwise_drift_detected", of, 1.0),
        SeriesSample("spanwise_drift_since_timestamp_seconds", of, 1_700_000_000.0),
        SeriesSample("spanwise_window_mean_ratio", of, 0.52),
        SeriesSample("spanwise_drift_cause", {**PLACE, "fault": "unknown", "tool": ""}, 1.0),
    ]
    alarms = Alarms({"chat": lambda _: True})
    series = Series(GROWTHS)
    for second in (0.0, 60.0):
        series.take(samples, second)
        alarms.look([*found_in(series, ("AgentScoreDrop",))], series)

    (told,) = alarms.due("chat")

    assert told.summary == "clerk (shop): scores of its traces are worse than before"
    assert " ragas_faithfulness dropped 22:13 UTC." in told.description
    assert " The mean of ragas_faithfulness over its window is 0.52." in told.description
    sent = notice(labels=told.labels, summary=told.summary, description=told.description)
    for kind in (Slack, Teams, Webhook):
        said = msgspec.json.encode(kind("https://hooks.example/x").request([sent], NOW).body)
        assert b"ragas_faithfulness dropped 22:13 UTC." in said
        assert b"clerk (shop): scores of its traces are worse than before" in said


# --- Slack -----------------------------------------------------------------------------------------------------------


def test_slack_has_a_text_and_a_block_for_each() -> None:
    sent = body(Slack("https://hooks.example/x"), FIRING, RESOLVED)

    assert sent["text"].startswith("page: clerk (shop): find_order fails\npage over: ")
    first, second = (each["text"]["text"] for each in sent["blocks"])
    assert "in 38 of 75 sessions" in first
    assert "|Look at it>" in first
    assert "From 2023-11-14 22:13:20 UTC to 2023-11-14 22:18:20 UTC." in second


def test_slack_reads_no_name_as_markup() -> None:
    sent = body(Slack("https://hooks.example/x"), notice(summary=HOSTILE, page=None))

    (block,) = sent["blocks"]
    assert "<" not in block["text"]["text"]
    assert "&lt;!channel&gt;" in block["text"]["text"]
    assert "*bold*" not in block["text"]["text"]
    assert block["text"]["verbatim"] is True


@pytest.mark.parametrize("tool", ["find_order", "Find-Order.v2"])
def test_slack_leaves_a_plain_name_as_it_is(tool: str) -> None:
    sent = body(Slack("https://hooks.example/x"), notice(summary=f"{tool} fails"))

    assert f"{tool} fails" in sent["text"]


def test_slack_stays_within_its_limits() -> None:
    sent = body(Slack("https://hooks.example/x"), *[LONG] * Slack.most)

    assert len(sent["blocks"]) <= 50
    assert all(len(each["text"]["text"]) <= 3000 for each in sent["blocks"])


# --- Teams -----------------------------------------------------------------------------------------------------------


def test_teams_has_one_adaptive_card() -> None:
    sent = body(Teams("https://teams.example/x"), FIRING, RESOLVED)

    (attachment,) = sent["attachments"]
    card = attachment["content"]
    assert (sent["type"], attachment["contentType"]) == (
        "message",
        "application/vnd.microsoft.card.adaptive",
    )
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    runs = [run for block in card["body"] for run in block["inlines"]]
    assert [each["color"] for each in runs if "color" in each] == ["Attention", "Good"]
    assert card["actions"][0]["url"] == FIRING.page


def test_teams_reads_no_name_as_markup() -> None:
    sent = body(Teams("https://teams.example/x"), notice(summary=HOSTILE))

    blocks = sent["attachments"][0]["content"]["body"]
    assert {each["type"] for each in blocks} == {"RichTextBlock"}, "a TextBlock is Markdown"
    (run,) = blocks[0]["inlines"]
    assert run["type"] == "TextRun"
    assert HOSTILE in run["text"]


def test_teams_stays_within_its_limit() -> None:
    sent = body(Teams("https://teams.example/x"), *[LONG] * Teams.most)

    assert len(msgspec.json.encode(sent)) <= LARGEST


# --- PagerDuty -------------------------------------------------------------------------------------------------------


def test_pagerduty_is_sent_the_beginning() -> None:
    sent = body(PagerDuty("R0UTE"), FIRING)

    assert sent["routing_key"] == "R0UTE"
    assert sent["event_action"] == "trigger"
    assert sent["client_url"] == FIRING.page
    assert sent["links"] == [{"href": FIRING.page, "text": "What changed"}]
    payload = sent["payload"]
    assert payload | {"custom_details": {}} == {
        "summary": "clerk (shop): find_order fails",
        "source": "shop",
        "severity": "critical",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "component": "clerk",
        "group": "shop",
        "class": "AgentFault",
        "custom_details": {},
    }


def test_pagerduty_is_sent_the_end_with_the_same_key() -> None:
    first, last = (body(PagerDuty("R0UTE"), each) for each in (FIRING, RESOLVED))

    assert last == {
        "routing_key": "R0UTE",
        "event_action": "resolve",
        "dedup_key": first["dedup_key"],
    }
    assert len(first["dedup_key"]) <= 255


def test_a_ticket_is_a_warning_and_texts_are_cut() -> None:
    labels = tuple((k, "ticket" if k == "severity" else v) for k, v in FIRING.labels)
    sent = body(
        PagerDuty("R0UTE", "https://events.eu.pagerduty.com"),
        notice(labels=labels, summary="s" * 2000),
    )

    assert sent["payload"]["severity"] == "warning"
    assert len(sent["payload"]["summary"]) == 1024
    assert PagerDuty("R", "https://events.eu.pagerduty.com/").request([FIRING], NOW).url == (
        "https://events.eu.pagerduty.com/v2/enqueue"
    )


# --- Alertmanager ----------------------------------------------------------------------------------------------------


def test_alertmanager_is_sent_a_list_with_an_end_in_four_minutes() -> None:
    request = Alertmanager("http://alerts:9093/prefix/").request([FIRING, RESOLVED], NOW)

    assert request.url == "http://alerts:9093/prefix/api/v2/alerts"
    first, second = request.body
    assert first["labels"] == dict(FIRING.labels)
    assert first["startsAt"] == "2023-11-14T22:13:20.000Z"
    assert first["endsAt"] == "2023-11-14T22:18:20.000Z"
    assert second["endsAt"] == "2023-11-14T22:14:20.000Z"
    assert set(first["annotations"]) == {"summary", "description", "runbook", "page"}


def test_log_time_ahead_of_the_machines_clock_leaves_no_alert_in_the_future() -> None:
    request = Alertmanager("http://alerts:9093").request([FIRING, RESOLVED], FIRING.start - 3600)

    assert all(each["startsAt"] <= each["endsAt"] for each in request.body)
    assert request.body[1]["endsAt"] == "2023-11-14T21:13:20.000Z"


# --- webhook ---------------------------------------------------------------------------------------------------------


def event(kind: Webhook, sent: Notice) -> tuple[Mapping[str, Any], Mapping[str, str], bytes]:
    request = kind.request([sent], NOW)
    raw = msgspec.json.encode(request.body)
    return msgspec.json.decode(raw), request.headers, raw


def test_a_webhook_is_sent_a_cloud_event() -> None:
    facts = {"mean": 0.5, "lower_bound": 0.4, "upper_bound": 0.6, "samples": 75.0}
    cloud_event, headers, _ = event(
        Webhook("https://x"), notice(facts=facts, sessions=("s-1", "s-2"))
    )

    assert headers == {"content-type": "application/cloudevents+json"}
    assert cloud_event["specversion"] == "1.0"
    assert cloud_event["type"] == "spanwise.alert.firing.v1"
    assert cloud_event["data"]["labels"] == dict(FIRING.labels)
    assert cloud_event["data"]["sessions"] == ["s-1", "s-2"]
    assert cloud_event["data"] | facts == cloud_event["data"]


def test_an_event_sent_again_has_the_same_id_and_the_end_another() -> None:
    first, again, end = (
        event(Webhook("https://x"), each)[0] for each in (FIRING, FIRING, RESOLVED)
    )

    assert first["id"] == again["id"] != end["id"]
    assert first["subject"] == end["subject"]
    assert end["type"] == "spanwise.alert.resolved.v1"
    assert end["data"]["endsAt"] == "2023-11-14T22:18:20.000Z"


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        (
            "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode(),
            b"0123456789abcdef01234567",
        ),
        ("plain words", b"plain words"),
    ],
)
def test_a_signature_is_that_of_standard_webhooks(secret: str, key: bytes) -> None:
    cloud_event, headers, raw = event(Webhook("https://x", secret), FIRING)

    signed = f"{cloud_event['id']}.{int(NOW)}.".encode() + raw
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-id"] == cloud_event["id"]
    assert headers["webhook-timestamp"] == str(int(NOW))
    assert headers["webhook-signature"] == f"v1,{wanted}"
