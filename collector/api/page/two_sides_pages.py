"""The page that compares two sides of an agent, at `/compare`."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import RequestRefused, text_of
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.page.rendering import Rendering
from collector.api.page.two_sides import AskedSide, two_sides, usual_sides
from collector.api.session_asked import moment_of
from collector.api.what_changed import FOR_EVER
from collector.base.clock import Clock
from collector.records.comparison import in_words, with_faults

Verdict: TypeAlias = Callable[[Mapping[str, str | None]], dict[str, Any]]
"""The parameters of `/api/v1/compare` in, its verdict out; raises Refused."""
EVERY = "*"  # the version that stands for all of them, in the address


class TwoSidesPages:
    def __init__(
        self,
        *,
        index: Index,
        off_loop: OffLoop,
        rendering: Rendering,
        verdict: Verdict,
        clock: Clock,
    ) -> None:
        self._index = index
        self._off_loop = off_loop
        self._rendering = rendering
        self._verdict = verdict
        self._clock = clock

    def routes(self) -> list[Route]:
        return [Route("/compare", self.compare)]

    async def compare(self, request: Request) -> Response:
        service, agent = text_of(request, "service"), text_of(request, "agent")
        if service is None or agent is None:
            return self._rendering.missing("agent")
        given: dict[str, AskedSide] = {}
        wrong: list[str] = []
        for name in ("baseline", "candidate"):
            version = text_of(request, name)
            texts = [text_of(request, f"{name}_{end}") for end in ("from", "to")]
            if version is None and texts == [None, None]:
                continue
            first, last = (self._moment(text, wrong) for text in texts)
            given[name] = AskedSide(
                version=None if version == EVERY else version,
                first=0.0 if first is None else first,
                last=FOR_EVER if last is None else last,
            )
        sides = await self._off_loop.run(lambda: self._sides(service, agent, given))
        if sides is None:
            return self._rendering.missing("agent", agent)
        said = _said(
            self._verdict, service, agent, *sides
        )  # here: it reads what the event loop owns
        return await self._off_loop.run(lambda: self._page(service, agent, sides, said, wrong))

    def _moment(self, text: str | None, wrong: list[str]) -> float | None:
        moment = None if text is None else moment_of(text, self._clock())
        if text is not None and moment is None:
            wrong.append(
                f"{text[:80]} is neither a time such as 2026-03-01T14:00 nor a length such as 7d"
            )
        return moment

    def _sides(
        self, service: str, agent: str, given: Mapping[str, AskedSide]
    ) -> tuple[AskedSide, AskedSide] | None:
        with self._index.reading() as reader:
            versions = reader.versions(service, agent)
        return usual_sides(versions, given) if versions else None

    def _page(
        self,
        service: str,
        agent: str,
        sides: tuple[AskedSide, AskedSide],
        said: dict[str, Any] | None,
        wrong: list[str],
    ) -> Response:
        with self._index.reading() as reader:
            versions = reader.versions(service, agent)
            view = two_sides(reader, versions, *sides)
        found = None if said is None else with_faults(said, view["changed"])
        return self._rendering.page(
            "two_sides.html",
            service=service,
            agent=agent,
            sides=[
                _shown(name, side)
                for name, side in zip(("baseline", "candidate"), sides, strict=True)
            ],
            versions=[each.entry.agent_version or "" for each in versions],
            every=EVERY,
            verdict=found and (found["verdict"], in_words(found)),
            wrong=wrong,
            view=view,
        )


def _said(
    verdict: Verdict, service: str, agent: str, baseline: AskedSide, candidate: AskedSide
) -> dict[str, Any] | None:
    """May this release go on: the verdict. Only where two versions are compared, whole."""
    usual = AskedSide()
    whole = all(
        (each.first, each.last) == (usual.first, usual.last) for each in (baseline, candidate)
    )
    if not whole or not baseline.version or not candidate.version:
        return None
    try:
        return verdict(
            {
                "service": service,
                "agent": agent,
                "baseline": baseline.version,
                "candidate": candidate.version,
            }
        )
    except RequestRefused:
        return None


def _shown(name: str, side: AskedSide) -> dict[str, Any]:
    return {
        "name": name,
        "version": EVERY if side.version is None else side.version,
        "first": _text(side.first) if side.first else "",
        "last": _text(side.last) if side.last < FOR_EVER else "",
    }


def _text(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
