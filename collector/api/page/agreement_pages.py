"""The page that puts evaluators beside what people said."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.agreement_routes import FILTERS, differing_shown
from collector.api.answers import text_of
from collector.api.page.site import Pages

ROWS = 100
DIFFERING = 25
"""Evaluators, and pairs of each that differ, on one page; what is beyond is counted."""
OPEN = 5  # pairs of an evaluator that are shown before the fold
AGREES = 0.8
"""The rank from which on an evaluator tells the liked from the disliked well enough to be folded away: four in five."""


class AgreementPages(Pages):
    def routes(self) -> list[Route]:
        return [Route("/agreement", self.agreement)]

    async def agreement(self, request: Request) -> Response:
        wanted = {name: text for name in FILTERS if (text := text_of(request, name)) is not None}

        def page() -> Response:
            agreed, differing = self.site.agreements.look(wanted)
            rows = [each.shown() for each in agreed]
            rows.sort(key=lambda row: math.inf if row["rank"] is None else row["rank"])
            doubtful = [row for row in rows if row["rank"] is not None and row["rank"] < AGREES]
            open_rows = doubtful or rows[:1]
            names = [row["evaluator"] for row in rows]
            view: dict[str, Any] = {
                "evaluator": wanted.get("evaluator"),
                "rows": open_rows[:ROWS],
                "others": rows[len(open_rows) :][:ROWS],
                "more_rows": len(open_rows[ROWS:]) + len(rows[len(open_rows) :][ROWS:]),
                "differing": _by_evaluator(names, [differing_shown(*each) for each in differing]),
            }
            return self.site.rendering.page("agreement.html", view=view)

        return await self.site.off_loop.run(page)


def _by_evaluator(
    names: Sequence[str], differing: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        pairs = [each for each in differing if each["evaluator"] == name]
        if pairs:
            shown = {"open": pairs[:OPEN], "rest": pairs[OPEN:DIFFERING], "of": len(pairs)}
            found.append({"evaluator": name, **shown})
    return found[:DIFFERING]
