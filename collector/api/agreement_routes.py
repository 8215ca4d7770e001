"""`/api/v1/agreement`, and the gauges of the same: every evaluator and judge beside what people said."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.agreement import AgreementLabels, Compared, compared
from collector.api.answers import RequestRefused, answer, limit_of, only, text_of
from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.query import time_shown
from collector.base.clock import next_tick
from collector.base.telemetry import Telemetry
from evaluators.formulas.people_agreement import Agreement, agreement

EVERY = 60.0  # seconds between two looks for the gauges
MOST_SERIES = 500  # of a gauge: those with the most pairs
FILTERS = ("service", "agent", "evaluator", "name")


class Agreed(NamedTuple):
    labels: AgreementLabels
    agreement: Agreement
    is_judge: bool

    @property
    def is_chance(self) -> bool:
        return self.is_judge and self.agreement.is_chance

    def shown(self) -> dict[str, Any]:
        numbers = self.agreement._asdict()
        return {**self.labels._asdict(), **numbers, "no_better_than_chance": self.is_chance}


class Agreements:
    """Looks at the index.

    `catalogue`: every evaluator: name, method, whether it runs. `off_loop`: where requests are read. `telemetry`:
    bounds the services among the labels.
    """

    def __init__(
        self,
        *,
        index: Index,
        catalogue: Callable[[], Sequence[Mapping[str, Any]]],
        off_loop: OffLoop,
        telemetry: Telemetry,
        families: ApiFamilies,
    ) -> None:
        self._index = index
        self._catalogue = catalogue
        self._off_loop = off_loop
        self._telemetry = telemetry
        self._families = families
        self.now: Sequence[Agreed] = ()  # as of the last look, those with the most pairs first

    def routes(self) -> list[Route]:
        return [Route("/api/v1/agreement", self.agreement)]

    async def run(self, stopping: asyncio.Event) -> None:
        """Look every minute, for the gauges and the pages."""
        while not stopping.is_set():
            with suppress(RequestRefused):  # the index is being opened again: the next look sees it
                self.now = await asyncio.to_thread(lambda: self.look()[0])
                self._show()
            await next_tick(EVERY, stopping)

    async def agreement(self, request: Request) -> Response:
        """How far they agree, and the pairs in which they do not: those furthest apart first."""
        only(request, *FILTERS, "limit")
        wanted = {name: text for name in FILTERS if (text := text_of(request, name)) is not None}
        limit = limit_of(request)

        def asked() -> Response:
            agreed, differing = self.look(wanted)
            return answer(
                {
                    "agreement": [each.shown() for each in agreed],
                    "items": [differing_shown(*each) for each in differing[:limit]],
                    "next": None,
                }
            )

        return await self._off_loop.run(asked)

    def look(
        self, wanted: Mapping[str, str] | None = None
    ) -> tuple[list[Agreed], list[tuple[AgreementLabels, Compared]]]:
        """How far they agree, and the pairs in which they differ, worst first; `wanted`: values of labels.

        Raises Refused: the index cannot be read now.
        """
        judges = {
            each["name"]
            for each in self._catalogue()
            if each.get("method") == "llm_judge" and each.get("runs")
        }
        asked = (wanted or {}).items()
        with self._index.reading() as reading:
            found = {
                labels: pairs
                for labels, pairs in compared(reading).items()
                if asked <= labels._asdict().items()
            }
        agreed = [
            Agreed(labels, agreement([each.pair for each in pairs]), labels.evaluator in judges)
            for labels, pairs in found.items()
        ]
        differing = [
            (labels, each) for labels, pairs in found.items() for each in pairs if each.differs
        ]
        return (
            sorted(agreed, key=lambda each: (-each.agreement.samples, each.labels)),
            sorted(differing, key=lambda each: (-each[1].distance, -each[1].said, each[0])),
        )

    def _show(self) -> None:
        families = self._families
        for gauge in families.agreements:
            gauge.clear()
        for each in self.now[:MOST_SERIES]:
            found = each.agreement
            if found.rank is None or found.rank_upper is None:
                continue
            labels = (self._telemetry.service(each.labels.service), *each.labels[1:])
            families.agreement_samples.labels(*labels).set(found.samples)
            families.agreement_rank.labels(*labels).set(found.rank)
            if found.kappa is not None:
                families.agreement_kappa.labels(*labels).set(found.kappa)
            if each.is_judge:
                families.agreement_upper.labels(*labels).set(found.rank_upper)


def differing_shown(labels: AgreementLabels, each: Compared) -> dict[str, Any]:
    """One disagreement as the API gives it."""
    return {
        **labels._asdict(),
        "session_id": each.session_id,
        "trace_id": each.trace_id,
        "score": each.pair.score,
        "success": each.pair.passed,
        "said": "positive" if each.pair.liked else "negative",
        "time": time_shown(each.said),
    }
