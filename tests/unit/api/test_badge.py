"""What the overview says of spans that lack what evaluators look at."""

from collections.abc import Mapping
from typing import Any

from collector.api.about import About
from collector.api.answers import RequestRefused
from collector.api.page.overview import Badge, badges
from tests.support.api_stand import NewStand, filled
from tests.support.table import for_each


def finding(lack: str, *stops: str, setting: str | None = None) -> Mapping[str, Any]:
    advice = () if setting is None else ({"setting": setting, "note": ""},)
    return {
        "lack": lack,
        "says": None,
        "traces": 1,
        "stops": stops,
        "example": "a",
        "advice": advice,
    }


def stack(service: str, *findings: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"service": service, "dialects": ("genai",), "findings": findings}


UNREAD = finding("not_read", "coherence", setting="(no setting)")


def found(*stacks: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"stacks": stacks, "unscored": (), "judge": None}


@for_each(
    ("stacks", "text", "setting"),
    [
        (  # each evaluator counts once, and the first line of the first setting is named
            [
                stack("desk", finding("no_content", "coherence", "agentic", setting="A=1\nB=2")),
                stack("desk", finding("no_tool_results", "coherence", setting="C=3")),
            ],
            "no content and 1 more: 2 evaluators blind",
            "A=1",
        ),
        (
            [stack("desk", finding("no_session", "agent_reliability"))],
            "no session: 1 evaluator blind",
            None,
        ),
        (
            [stack("desk", {**UNREAD, "says": "spans of x are not read"})],
            "spans of x are not read: 1 evaluator blind",
            None,
        ),
    ],
)
def test_a_badge_says_what_is_lacking_and_what_sets_it(
    stacks: list[Mapping[str, Any]], text: str, setting: str | None
) -> None:
    assert badges(found(*stacks)) == {"desk": Badge(text=text, setting=setting)}


def test_what_stops_no_evaluator_is_no_badge() -> None:
    assert badges(found(stack("desk", finding("no_tokens", setting="A=1")), stack("other"))) == {}


async def test_the_overview_shows_the_badge_of_the_agents_service_alone(
    new_stand: NewStand,
) -> None:
    lacking = found(stack("refunds", finding("no_content", "coherence", setting="CAPTURE=<all>")))
    about = About(examine=lambda trace, spans: trace, diagnose=lambda notes, sessions: lacking)
    stand = filled(new_stand(about=about))

    page = await stand.text("/")

    assert page.count('<tr class="blind">') == 1
    of_refunds = page[page.index(">clerk<") :]
    assert 'href="/health#doctor">no content: 1 evaluator blind</a>' in of_refunds
    assert "<code>CAPTURE=&lt;all&gt;</code>" in of_refunds


async def test_the_overview_is_there_without_findings_where_traces_cannot_be_read_now(
    new_stand: NewStand,
) -> None:
    def refuse(_notes: object, _sessions: object) -> Mapping[str, Any]:
        raise RequestRefused(503, "too many")

    stand = filled(new_stand(about=About(diagnose=refuse)))

    answer = await stand.get("/")

    assert answer.status_code == 200
    assert ">clerk<" in answer.text
