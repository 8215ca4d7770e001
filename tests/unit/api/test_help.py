"""The page explains the alerts by itself, and leads to the user's own backend where it is configured."""

import re

import pytest

from collector.base.errors import ConfigError
from collector.config.load import load
from collector.slo.alerts import ALERTS
from collector.slo.rules import rules
from scripts.help_page import TEMPLATE, help_template
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand, filled

OF = make.trace(1)


def test_the_template_is_not_stale() -> None:
    assert TEMPLATE.read_text("utf-8") == help_template(), "run `python -m scripts.docs`"


async def test_every_runbook_of_the_rules_is_a_heading_of_the_help(filled_stand: Stand) -> None:
    page = await filled_stand.text("/help")
    headings = set(re.findall(r'<h3 id="(\w+)">', page))

    for group in rules(0.9):
        for rule in group["rules"]:
            if "annotations" in rule:
                address, _, anchor = rule["annotations"]["runbook"].partition("#")
                assert address == "http://127.0.0.1:4390/help"
                assert anchor in headings
    assert len(headings) == len(ALERTS)


async def test_its_links_stay_on_the_page_or_lead_out(filled_stand: Stand) -> None:
    page = await filled_stand.text("/help")
    main = page[page.index("<main") : page.index("</main>")]
    anchors = set(re.findall(r'id="([^"]+)"', main))

    for link in re.findall(r'href="([^"]+)"', main):
        assert link.startswith("http") or link.removeprefix("#") in anchors
    assert "\n| " not in main


async def test_every_page_leads_to_it(filled_stand: Stand) -> None:
    for address in ("/", "/sessions", "/health"):
        assert '<a href="/help">What alerts mean</a>' in await filled_stand.text(address)


@pytest.mark.parametrize(
    ("setting", "page", "link"),
    [
        (
            "links.trace=https://traces.example.com/t/{trace_id}?x=1",
            f"/trace?id={OF.trace_id}",
            f'href="https://traces.example.com/t/{OF.trace_id}?x=1" rel="noreferrer"',
        ),
        (
            "links.agent=https://grafana.example.com/d/x?var-service={service}&var-agent={agent}",
            f"/agent?service={OF.service}&agent={OF.agent}",
            (
                f'href="https://grafana.example.com/d/x?var-service={OF.service}&amp;'
                f'var-agent={OF.agent}" rel="noreferrer">Dashboard</a>'
            ),
        ),
    ],
)
async def test_a_page_leads_to_the_users_backend_where_a_template_says_so(
    new_stand: NewStand, filled_stand: Stand, setting: str, page: str, link: str
) -> None:
    assert link in (await filled(new_stand(setting)).get(page)).text
    without = await filled_stand.text(page)
    assert "in your backend" not in without
    assert ">Dashboard</a>" not in without


@pytest.mark.parametrize(
    ("key", "link", "name"),
    [
        ("trace", "https://host/trace", "trace_id"),
        ("trace", "{trace_id}", "trace_id"),
        ("trace", "https://host/{trace_id}/{x}", "trace_id"),
        ("agent", "https://host/{service}", "agent"),
        ("agent", "https://host/{agent}/{trace_id}", "agent"),
    ],
)
def test_a_template_without_its_name_is_refused(key: str, link: str, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^links\.{key}: expected a URL with \{{{name}\}}"):
        load([], {}, [], {"links": {key: link}})
