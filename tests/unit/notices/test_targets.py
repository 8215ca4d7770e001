"""What each kind of target is sent: as its vendor documents it, within its limits, without markup of others."""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
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
from tests.support.table import for_each

DATA = Path(__file__).parents[2] / "data" / "notices"
NOW = 1_700_000_060.0
HOSTILE = "<!channel> *bold* <http://evil|here> [x](http://evil) & `c` _i_"
FIRING = notice(
    facts={"mean": 0.5, "lower_bound": 0.4, "upper_bound": 0.6, "samples": 75.0},
    sessions=("s-1", "s-2"),
)
RESOLVED = notice(state="resolved", end=1_700_000_300.0)
LONG = notice(summary="s" * 9000, description="d" * 90_000)
SLACK, TEAMS = Slack("https://hooks.example/x"), Teams("https://teams.example/x")


def body(kind: TargetKind, *notices: Notice) -> Any:
    """As it goes over the wire."""
    return msgspec.json.decode(msgspec.json.encode(kind.request(notices, NOW).body))


@for_each(
    "name,kind,requests",
    [
        ("slack", SLACK, [(FIRING, RESOLVED)]),
        ("teams", TEAMS, [(FIRING, RESOLVED)]),
        ("pagerduty", PagerDuty("R0UTE"), [(FIRING,), (RESOLVED,)]),
        ("alertmanager", Alertmanager("http://alerts:9093/prefix/"), [(FIRING, RESOLVED)]),
        ("webhook", Webhook("https://x"), [(FIRING,), (RESOLVED,)]),
    ],
)
def test_each_target_is_sent_the_beginning_and_the_end_in_its_own_form(
    name: str, kind: TargetKind, requests: Sequence[Sequence[Notice]]
) -> None:
    """The keys of PagerDuty and the subjects of the webhook are the same for both, the ids of events are not."""
    sent = [(kind.request(each, NOW), body(kind, *each)) for each in requests]

    assert [
        {"url": request.url, "headers": request.headers, "body": said} for request, said in sent
    ] == json.loads((DATA / f"{name}.json").read_text())


def test_a_drop_of_a_score_of_others_is_told_as_one_of_ours() -> None:
    """From the gauges of its evaluator alone."""
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


def test_slack_reads_no_name_as_markup_and_leaves_a_plain_one_as_it_is() -> None:
    (block,) = body(SLACK, notice(summary=HOSTILE, page=None))["blocks"]

    assert "<" not in block["text"]["text"]
    assert "&lt;!channel&gt;" in block["text"]["text"]
    assert "*bold*" not in block["text"]["text"]
    for tool in ("find_order", "Find-Order.v2"):
        assert f"{tool} fails" in body(SLACK, notice(summary=f"{tool} fails"))["text"]


def test_teams_reads_no_name_as_markup() -> None:
    blocks = body(TEAMS, notice(summary=HOSTILE))["attachments"][0]["content"]["body"]

    assert {each["type"] for each in blocks} == {"RichTextBlock"}, "a TextBlock is Markdown"
    (run,) = blocks[0]["inlines"]
    assert run["type"] == "TextRun"
    assert HOSTILE in run["text"]


def test_long_notices_stay_within_the_limits_of_each_target() -> None:
    blocks = body(SLACK, *[LONG] * Slack.most)["blocks"]
    assert len(blocks) <= 50
    assert all(len(each["text"]["text"]) <= 3000 for each in blocks)
    assert len(msgspec.json.encode(body(TEAMS, *[LONG] * Teams.most))) <= LARGEST
    assert len(body(PagerDuty("R0UTE"), LONG)["payload"]["summary"]) == 1024


def test_to_pagerduty_a_ticket_is_a_warning_and_the_address_is_that_of_the_settings() -> None:
    labels = tuple((k, "ticket" if k == "severity" else v) for k, v in FIRING.labels)
    request = PagerDuty("R", "https://events.eu.pagerduty.com/").request(
        [replace(FIRING, labels=labels)], NOW
    )

    assert request.body["payload"]["severity"] == "warning"
    assert request.url == "https://events.eu.pagerduty.com/v2/enqueue"


def test_log_time_ahead_of_the_machines_clock_leaves_no_alert_in_the_future() -> None:
    request = Alertmanager("http://alerts:9093").request([FIRING, RESOLVED], FIRING.start - 3600)

    assert all(each["startsAt"] <= each["endsAt"] for each in request.body)
    assert request.body[1]["endsAt"] == "2023-11-14T21:13:20.000Z"


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
    request = Webhook("https://x", secret).request([FIRING], NOW)
    raw, headers = msgspec.json.encode(request.body), request.headers
    event = msgspec.json.decode(raw)

    signed = f"{event['id']}.{int(NOW)}.".encode() + raw
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-id"] == event["id"]
    assert headers["webhook-timestamp"] == str(int(NOW))
    assert headers["webhook-signature"] == f"v1,{wanted}"
