"""Section `notify`: one clear line for each mistake, and no secret printed."""

from typing import Any

import pytest

from collector.base.errors import ConfigError
from collector.config.load import load
from collector.config.tree import Config
from tests.support.table import for_each


def loaded(**target: Any) -> Config:
    return load([], {}, [], {"notify": {"to": {"chat": target}}})


@for_each(
    ("target", "line"),
    [
        (
            {},
            "notify.to.chat: expected one of slack, teams, pagerduty, alertmanager, webhook, got none",
        ),
        ({"slack": "http://a", "teams": "http://b"}, "notify.to.chat: expected one of"),
        ({"slack": "s3cr3t"}, "notify.to.chat.slack: expected a URL such as https://host/path"),
        (
            {"alertmanager": "http://u:p@host:9093"},
            "notify.to.chat.alertmanager: a URL without user",
        ),
        ({"slack": "http://a", "secret": "x"}, "notify.to.chat.secret: only a webhook is signed"),
        ({"webhook": "http://a", "secret": "whsec_%"}, "notify.to.chat.secret: behind whsec_"),
        (
            {"slack": "http://a", "endpoint": "http://b"},
            "notify.to.chat.endpoint: only with pagerduty",
        ),
        ({"slack": "http://a", "severity": "warning"}, "notify.to.chat.severity: "),
        ({"slack": "http://a", "only": ["AgentQualityFastBurn"]}, "notify.to.chat.only[0]: "),
        ({"slack": "http://a", "ca_file": "/no/such"}, "notify.to.chat.ca_file: no such file"),
    ],
)
def test_a_mistake_is_one_line_with_its_path(target: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(**target)

    assert str(raised.value).startswith(line)
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    "target",
    [
        {"slack": "https://hooks.slack.com/services/x"},
        {"teams": "https://x.logic.azure.com/workflows/y"},
        {"pagerduty": "key", "severity": "page", "endpoint": "https://events.eu.pagerduty.com"},
        {"alertmanager": "http://alertmanager:9093"},
        {"webhook": "http://localhost:1/x", "secret": "whsec_MDEy", "only": ["AgentFault"]},
    ],
)
def test_each_kind_is_taken(target: dict[str, Any]) -> None:
    (kept,) = loaded(**target).notify.to.values()

    assert kept.kind == next(iter(target))


@pytest.mark.parametrize("name", ["slack", "teams", "webhook"])
def test_an_address_that_is_a_secret_is_not_printed(name: str) -> None:
    assert "T000" not in loaded(**{name: "https://host/T000"}).model_dump_json()
