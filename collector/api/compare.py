"""`/api/v1/compare`: may this release go on? Answers come from memory; they read and change nothing."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from collector.api.answers import RequestRefused, answer, body_of, only, text_of
from collector.api.off_loop import OffLoop
from collector.base.telemetry import short
from collector.records.comparison import (
    EVALUATOR,
    VersionSide,
    VersionWindow,
    before,
    comparison,
    in_words,
    raised_by,
    version_of,
    with_faults,
    with_judged,
)
from collector.records.standing import AgentLabels, Standings
from collector.records.what_changed import ToolCounts, counted_by_version
from evaluators.formulas.fault_watch import Cause
from evaluators.formulas.release_verdict import MARGIN

Versions = Callable[[AgentLabels, str], Mapping[str, VersionWindow]]
"""(agent, evaluator) in; what is held of each version out."""
Counted = Mapping[Cause, ToolCounts]
Changed = Callable[[AgentLabels, str, str, Counted], Mapping[str, Any] | None]
"""(agent, baseline, candidate, counted) in; `records.what_changed` out, None where a side is not in the index."""
PARAMETERS = ("service", "agent", "candidate", "baseline", "evaluator", "margin")
LARGEST = 64 << 10
"""Bytes of what Flagger sends."""
_NO_VERSION = (
    "the sessions of this agent name no version; set OTEL_RESOURCE_ATTRIBUTES=service.version=..."
    " where it runs, or gen_ai.agent.version on its spans"
)


class _Gate(msgspec.Struct):
    metadata: dict[str, str] = {}


@dataclass(slots=True, eq=False, kw_only=True)
class Compare:
    versions: Versions
    standings: Callable[[], Standings]
    evaluators: Callable[[], Sequence[Mapping[str, Any]]]
    changed: Changed
    off_loop: OffLoop

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/compare", self.compare),
            Route("/api/v1/compare/gate", self.gate, methods=["POST"]),
        ]

    async def compare(self, request: Request) -> Response:
        """The verdict as JSON, 200 whatever it is; one that is decided with what changed."""
        only(request, *PARAMETERS)
        found = await self._judged({name: text_of(request, name) for name in PARAMETERS})
        if found["verdict"] == "inconclusive":
            return answer({**found, "changed": None})
        return answer(found)

    async def gate(self, request: Request) -> Response:
        """A webhook of Flagger: 200 goes on, 409 does not. `metadata` has the fields of `compare`.

        Inconclusive goes on, except before the promotion (`type: confirm-promotion`), which waits.
        """
        given = await _metadata(request)
        found = await self._judged({name: given.get(name) for name in PARAMETERS})
        waits = given.get("type") == "confirm-promotion"
        goes_on = found["passed"] or (not found["failed"] and not waits)
        return PlainTextResponse(in_words(found), status_code=200 if goes_on else 409)

    async def _judged(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """The verdict with `changed`, and with the faults that the index knows of."""
        found = self.compared(given)
        baseline, candidate = (found[side]["version"] for side in ("baseline", "candidate"))
        changed: Mapping[str, Any] | None = None
        counted: Counted = {}
        if None not in (baseline, candidate):
            versions = (found["service"], found["agent"]), baseline, candidate
            counted = self.counted(*versions)
            # Where the index is busy or being opened, what the windows hold decides.
            with suppress(RequestRefused):
                changed = await self.off_loop.run(lambda: self.changed(*versions, counted))
        # What the watches counted has decided already.
        return {**with_faults(found, None if counted else changed), "changed": changed}

    def compared(self, given: Mapping[str, str | None]) -> dict[str, Any]:
        """The verdict of these parameters. Raises Refused: one is wrong or missing, or there is nothing to compare."""
        service, candidate = (_needed(given, name) for name in ("service", "candidate"))
        margin = _margin(given.get("margin"))
        evaluator = given.get("evaluator") or EVALUATOR
        agent = self._agent(service, given.get("agent"))
        versions = self.versions(agent, evaluator)
        if versions.keys() <= {""}:
            self._explain(evaluator, versions)

        def ranked(
            name: str, baseline: str | None
        ) -> tuple[dict[str, Any], VersionSide, VersionSide]:
            held = versions if name == evaluator else self.versions(agent, name)
            entries = {version: each.entries for version, each in held.items()}
            mine = version_of(candidate, entries.get(candidate, ()))
            taken = held[candidate].looks if candidate in held else None
            usual = before(candidate, entries) if taken is None else taken.baseline
            baseline = baseline or usual
            other = VersionSide(None, ())
            if baseline is not None:
                other = version_of(baseline, entries.get(baseline, ()))
            found = comparison(
                mine,
                other,
                service=agent[0],
                agent=agent[1],
                evaluator=name,
                margin=margin,
                threshold=self._threshold(name),
                looks=taken.looks if taken is not None and baseline == usual else None,
            )
            return found, mine, other

        found, mine, other = ranked(evaluator, given.get("baseline"))
        baseline = other.name
        standing = self.standings().get(agent)
        judge = None if standing is None or given.get("evaluator") else standing.judged_by
        if judge is not None and baseline is not None:
            found = with_judged(found, ranked(judge, baseline)[0])
        faults = () if standing is None else standing.faults
        counted = self.counted(agent, baseline or "", candidate)
        raised = raised_by(faults, mine.sessions, other.sessions)
        found = with_faults(found, None, raised, counted)
        page = urlencode({"service": agent[0], "agent": agent[1]})
        return {**found, "page": f"/agent?{page}"}

    def counted(self, agent: AgentLabels, baseline: str, candidate: str) -> Counted:
        """What the fault watches counted of two versions; empty where they do not know them."""
        standing = self.standings().get((short(agent[0]), short(agent[1])))
        counts = () if standing is None else standing.by_version
        return counted_by_version(counts, short(baseline), short(candidate))

    def _explain(self, evaluator: str, versions: Mapping[str, VersionWindow]) -> None:
        """Why there is nothing to compare. Raises Refused: always."""
        if versions:
            raise RequestRefused(400, _NO_VERSION)
        known = {each["name"] for each in self.evaluators() if each.get("scope") == "session"}
        if evaluator not in known:
            raise RequestRefused(
                422, f"evaluator: expected one that scores sessions, got `{evaluator[:80]}`"
            )
        raise RequestRefused(404, f"no session of this agent has a score of {evaluator} yet")

    def _agent(self, service: str, agent: str | None) -> AgentLabels:
        mine = [labels for labels in self.standings() if labels[0] == short(service)]
        if not mine:
            raise RequestRefused(404, f"no service `{service[:200]}` has scores")
        if agent is None and len(mine) > 1:
            names = ", ".join(sorted(labels[1] for labels in mine))
            raise RequestRefused(422, f"agent: the service has several; name one of {names}")
        found = mine[0] if agent is None else (short(service), short(agent))
        if found not in mine:
            raise RequestRefused(404, f"no agent `{found[1]}` of `{found[0]}` has scores")
        return found

    def _threshold(self, evaluator: str) -> float | None:
        found = [each for each in self.evaluators() if each.get("name") == evaluator]
        return found[0].get("threshold") if found else None


def _needed(given: Mapping[str, str | None], name: str) -> str:
    value = given.get(name)
    if not value:
        raise RequestRefused(422, f"{name}: required")
    return value


def _margin(text: str | None) -> float:
    try:
        margin = MARGIN if text is None else float(text)
    except ValueError:
        margin = 0.0
    if not 0 < margin <= 0.5:
        raise RequestRefused(422, "margin: expected a number above 0, at most 0.5")
    return margin


async def _metadata(request: Request) -> Mapping[str, str]:
    body = await body_of(request, LARGEST)
    try:
        return msgspec.json.decode(body, type=_Gate).metadata
    except (msgspec.DecodeError, msgspec.ValidationError) as wrong:
        example = '{"metadata": {"service": "shop"}}'
        raise RequestRefused(422, f"expected JSON such as {example}") from wrong
