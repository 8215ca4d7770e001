"""The page of all sessions, whose address says the whole view, and that of one session."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from collector.api.agents import running_away
from collector.api.answers import cursor_or_top, text_of
from collector.api.base_path import root
from collector.api.page.session_view import TRACES, session_view, tokens_of
from collector.api.page.sheet import name
from collector.api.page.site import Pages
from collector.api.query import session_summary
from collector.api.search import BEGINNING
from collector.api.session_filter import PARAMETERS, RUNAWAY, filter_of, sort_of
from collector.api.session_list import SORTS, STATUSES
from collector.api.store import SessionEntry

ROWS = 30
USUAL = "worst"
ADDRESS = "/sessions"
TABLE = {"format": "csv", "limit": "500"}
"""Of the address of the list as a file."""
LENGTHS = ("1h", "24h", "7d", "30d")  # of the time that the form offers
_SAID = {
    "q": "search",
    "min_reliability": "reliability from",
    "max_reliability": "reliability to",
    "min_cost": "cost from (USD)",
    "min_seconds": "seconds from",
}


class SessionPages(Pages):
    """The list, worst first unless its address says otherwise; and one session."""

    def routes(self) -> list[Route]:
        return [Route(ADDRESS, self.sessions), Route("/session", self.session)]

    async def sessions(self, request: Request) -> Response:
        """Sessions as the address asks for them; a form's empty fields are left out of it."""
        given = {key: each for key, each in request.query_params.items() if each}
        if len(given) < len(request.query_params):
            return RedirectResponse(_address(given), 303)
        # here: the exporter's state is the event loop's
        runaways = running_away(self.site.standings())
        asked, wrong = filter_of(given, now=self.site.clock(), running_away=lambda: runaways)
        sort, unsorted = sort_of(given, USUAL)
        chosen = {key: given[key] for key in PARAMETERS if key in given and key != "sort"}
        wrong = [*wrong, *unsorted, *_unknown(given)]
        cursor = cursor_or_top(request)
        ordered = {} if sort == USUAL else {"sort": sort}

        def page() -> Response:
            found = self.site.query.sessions(asked, limit=ROWS, cursor=cursor, sort=sort)
            return self.site.rendering.page(
                "sessions.html",
                sessions=[row(each, runaways) for each in found.items],
                chosen={key: chosen.get(key, "") for key in PARAMETERS},
                sort=sort,
                sorts=[(each, _address(chosen, {"sort": each})) for each in SORTS],
                attributes=self.site.config.attributes.filter,
                statuses=[*STATUSES, RUNAWAY],
                lengths=LENGTHS,
                filters=[
                    (_SAID.get(key, key), name(value), _address({**chosen, key: ""}, ordered))
                    for key, value in chosen.items()
                ],
                wrong=wrong,
                searched=BEGINNING,
                top=_address(chosen, ordered) if cursor else None,
                table=root() + f"/api/v1/sessions?{urlencode({**chosen, 'sort': sort, **TABLE})}",
                following=found.next and _address(chosen, {**ordered, "cursor": found.next}),
            )

        return await self.site.off_loop.run(page)

    async def session(self, request: Request) -> Response:
        """One session, its newest traces or those before one; the first one where several services have that id."""
        session_id, service = text_of(request, "id"), text_of(request, "service")
        before = text_of(request, "before")
        if session_id is None:
            return self.site.rendering.missing("session")

        def page() -> Response:
            part = self.site.query.session_part(session_id, service, most=TRACES, before=before)
            if part is None:
                return self.site.rendering.missing("session", session_id)
            return self.site.rendering.page("session.html", session=session_view(part))

        return await self.site.off_loop.run(page)


def row(entry: SessionEntry, runaways: frozenset[tuple[str, str]]) -> dict[str, Any]:
    return {
        **session_summary(entry),
        "unscored": entry.unscored,
        "runs_away": (entry.service, entry.session_id) in runaways,
        "tokens": tokens_of(entry),
    }


def _address(*parts: Mapping[str, str]) -> str:
    given = {key: value for part in parts for key, value in part.items() if value}
    if given.get("sort") == USUAL:
        del given["sort"]
    return root() + (f"{ADDRESS}?{urlencode(given)}" if given else ADDRESS)


def _unknown(given: Mapping[str, str]) -> list[str]:
    others = (key for key in given if key not in PARAMETERS and key != "cursor")
    return [f"{key[:40]}: there is no such filter" for key in others]
