"""The page of all sessions, whose address says the whole view, and that of one session."""

from collections.abc import Mapping
from itertools import count
from typing import Any, cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from collector.api.agents import running_away
from collector.api.answers import cursor_or_top, text_of
from collector.api.base_path import root
from collector.api.page.feedback_pages import said_view
from collector.api.page.sheet import PAGE, Sheet, name
from collector.api.page.signal_rows import failing, runs_away, signal_rows, verdict, why_no_scores
from collector.api.page.site import Pages
from collector.api.query import SessionPart, TraceShown, session_shown, session_summary
from collector.api.search import BEGINNING
from collector.api.session_filter import PARAMETERS, RUNAWAY, filter_of, sort_of
from collector.api.session_list import SORTS, STATUSES
from collector.api.store import SessionEntry

TRACES = 50  # traces of a session that one page shows; earlier ones have pages of their own
OTHERS = 20  # services with a session of the same id that the page names
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


def session_view(part: SessionPart) -> dict[str, Any]:
    """A session with some of its traces; where these do not fit on the page, the earliest of them are left out."""
    shown = part.shown
    whole = session_shown(shown)
    turns = cast(list[dict[str, Any]], whole["traces"])
    numbered = list(zip(count(part.earlier + 1), turns, shown.traces, strict=False))
    head = Sheet(f"/api/v1/sessions/{name(whole['session_id'])}", PAGE // 4)
    body = Sheet(head.whole, PAGE - PAGE // 4)
    fitting = body.rows(reversed(numbered), lambda row: _turn(body, *row), cost=1_000)
    of = max(shown.entry.traces, part.earlier + len(turns))
    return {
        **whole,
        "tokens": tokens_of(shown.entry),
        "unscored": shown.entry.unscored if shown.entry.reliability is None else None,
        "signals": signal_rows(shown.signals, head),
        "verdict": verdict(
            shown.entry.reliability,
            [turn["signals"] for turn in fitting],
            is_whole=len(fitting) == of,
        ),
        "said": said_view(shown.feedback, head),
        "others": part.others[:OTHERS],
        "more_others": len(part.others[OTHERS:]),
        "of": of,
        "later": of - part.earlier - len(turns),
        "earlier": part.earlier + len(turns) - len(fitting),
        "traces": fitting[::-1],
    }


def tokens_of(entry: SessionEntry) -> int | None:
    """Of its traces together, input and output; None: none of them says."""
    known = [each for each in (entry.input_tokens, entry.output_tokens) if each is not None]
    return sum(known) if known else None


def _turn(sheet: Sheet, number: int, turn: dict[str, Any], trace: TraceShown) -> dict[str, Any]:
    whole = f"/api/v1/traces/{turn['trace_id']}"
    signals = signal_rows(trace.signals, sheet, whole)
    why = why_no_scores(signals)
    return {
        **turn,
        **{key: sheet.long(turn[key], whole) for key in ("input", "output")},
        "error": sheet.text(turn["error"], whole),
        "number": number,
        "signals": signals,
        "failing": failing(signals),
        "runs_away": runs_away(signals),
        "unscored": why and sheet.name(why),
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
