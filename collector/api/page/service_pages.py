"""Pages about the service itself."""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.about import Row
from collector.api.page.sheet import Sheet
from collector.api.page.site import Pages
from collector.api.page.views import duration, usd, words
from collector.api.store import micros
from collector.api.what_changed import scores_of
from collector.base.steady_clock import APART
from collector.config.tree import Config
from collector.records.moved import EvaluatorScores, share_failing
from evaluators.counts import amount

LATE = 60.0  # seconds of lag, or of an undelivered signal, from which on somebody should look
AGREED = 3  # agents for which the page shows how far an evaluator and people agree: those with the most pairs
AGENTS = 100  # whose forwarded traces are shown
STACKS = 30  # stacks whose findings are shown
_SCOPES = {"trace": "Of a trace", "session": "Of a session"}


def catalogue_view(
    rows: Sequence[Row],
    agreed: Sequence[Row] = (),
    scores: Sequence[Mapping[str, EvaluatorScores]] = (),
) -> dict[str, Any]:
    """The evaluators by scope, each once with its methods; and how many run.

    `agreed`: how far evaluators and people agree, as the API gives it. `scores`: what the evaluators said of some
    sessions.
    """
    by_name: dict[str, list[Row]] = {}
    for each in agreed:
        by_name.setdefault(each["evaluator"], []).append(each)
    shown: list[dict[str, Any]] = [
        {**_evaluator(row), "agreed": by_name.get(row["name"], [])[:AGREED] if row["runs"] else []}
        for row in rows
    ]
    scopes: dict[str, list[dict[str, Any]]] = {title: [] for title in _SCOPES.values()}
    for name in dict.fromkeys(row["name"] for row in shown):
        methods = [row for row in shown if row["name"] == name]
        methods.sort(key=lambda row: (not row["runs"], row["is_stand_in"]))
        said = [each[name] for each in scores if name in each]
        scopes[_SCOPES[methods[0]["scope"]]].append(
            {
                "name": name,
                "methods": methods,
                "mean": math.fsum(each.score for each in said) / len(said) if said else None,
                "failing": share_failing(said),
                "sessions": len(said),
            }
        )
    return {
        "scopes": scopes,
        "running": len({row["name"] for row in shown if row["runs"]}),
        "every": len({row["name"] for row in shown}),
    }


def _evaluator(row: Row) -> dict[str, Any]:
    doc = str(row["doc"]).partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]
    first, _, rest = doc.strip().partition("\n\n")
    return {
        **row,
        "says": " ".join(first.split()),
        "rest": "\n\n".join(" ".join(each.split()) for each in rest.split("\n\n") if each.strip()),
        "options": [(name, repr(value)) for name, value in row["options"].items()],
    }


def judge_view(config: Config, judge: Mapping[str, Any]) -> dict[str, Any]:
    limit, remaining = judge["limit"], judge["remaining"]
    used = None if limit is None or remaining is None else max(0.0, limit - remaining)
    return {
        **judge,
        "model": config.judge.model,
        "sample": config.judge.sample,
        "calls_per_minute": config.judge.budget.calls_per_minute,
        "used": used,
        "used_share": None if used is None or not limit else min(1.0, used / limit),
        "is_here": "judge" in config.roles,
    }


def health_view(
    vitals: Mapping[str, Any],
    found: Row,
    *,
    state: str,
    roles: Sequence[str],
    forwarded: Sequence[tuple[str, str, bool, str, int]] = (),
) -> dict[str, Any]:
    """`forwarded`: see `Reading.forwarded_since`."""
    sheet = Sheet("spanwise doctor")
    stacks = [_stack(each, sheet) for each in found["stacks"][:STACKS]]
    unscored = [
        {**each, "service": sheet.name(each["service"]), "why": sheet.text(each["why"])}
        for each in found["unscored"][:STACKS]
    ]
    judge = found["judge"]
    return {
        **vitals,
        "forwarded": forwarded_view(forwarded, sheet),
        "state": state,
        "roles": list(roles),
        "looked_at": found["looked_at"],
        "of": found["of"],
        "stacks": stacks,
        "stacks_left_out": len(found["stacks"][STACKS:]),
        "unscored": unscored,
        "failing_judge": judge and {**judge, "message": sheet.text(judge["message"])},
        "problems": [*_problems(vitals), *_found(stacks, unscored, judge)],
    }


def forwarded_view(
    rows: Sequence[tuple[str, str, bool, str, int]], sheet: Sheet
) -> list[dict[str, Any]]:
    """Traces that were sent on or not, by reason: of all agents, then of each, those with the most first."""
    agents: dict[tuple[str, str], dict[bool, Counter[str]]] = {}
    for service, agent, is_kept, reason, count in rows:
        for each in (("", "all agents"), (service, agent)):
            agents.setdefault(each, {True: Counter(), False: Counter()})[is_kept][reason] += count
    return [
        {
            "service": sheet.name(service),
            "agent": sheet.name(agent),
            "sent": dict(found[True].most_common()),
            "not_sent": dict(found[False].most_common()),
        }
        for (service, agent), found in [*agents.items()][: 1 + AGENTS]
    ]


def _stack(stack: Row, sheet: Sheet) -> dict[str, Any]:
    return {
        "service": sheet.name(stack["service"]),
        "said": sheet.text(", ".join(stack["dialects"])),
        "scopes": sheet.text(", ".join(stack["scopes"])),
        "sdks": sheet.text(", ".join(stack["sdks"])),
        "turns": stack["turns"],
        "traces": stack["traces"],
        "findings": [
            {
                "lack": each["lack"],
                "says": sheet.text(each["says"] or ""),
                "traces": each["traces"],
                "stops": list(each["stops"]),
                "example": sheet.name(each["example"]),
            }
            for each in stack["findings"]
        ],
        "advice": _advice(stack["findings"], sheet),
    }


def _advice(findings: Sequence[Row], sheet: Sheet) -> list[dict[str, Any]]:
    """Each setting once, with everything that it fixes."""
    fixed: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        for each in finding["advice"]:
            fixed.setdefault((each["setting"], each["note"]), []).append(finding["lack"])
    return [
        {"setting": sheet.text(setting), "note": sheet.text(note), "fixes": lacks}
        for (setting, note), lacks in fixed.items()
    ]


DOORS = {
    "path": "to a path of the HTTP port that serves nothing (traces go to /v1/traces)",
    "media_type": "in a form that cannot be read (protobuf and JSON can)",
    "http2": "to the HTTP port in gRPC",
    "http1": "to the gRPC port in HTTP/1",
}
"""Requests to the wrong door, by what was wrong with them."""


def _problems(vitals: Mapping[str, Any]) -> Iterator[str]:
    yield from _behind(vitals)
    yield from _clock(vitals["log_time_ahead"] or 0.0)
    for door, kind in DOORS.items():
        if count := vitals["misdirected"].get(door):
            yield f"{_amount(count, 'request')} came {kind}: set the endpoint or the protocol of that sender"
    if vitals["gaps"]:
        yield f"{_amount(vitals['gaps'], 'record')} expired unread: a larger log, or more workers"
    if vitals["evicted"].get("index"):
        yield "the index of the page was damaged on disk and began empty: sessions from before are not shown"
    for room, count in vitals["room_failures"].items():
        if count:
            yield f"room {room} failed {_amount(count, 'time')} and was started again: the log of the service says why"
    for reason, count in vitals["worker_restarts"].items():
        if count:
            yield f"workers were replaced {_amount(count, 'time')} ({words(reason)})"
    judge = vitals["judge"]
    if judge["remaining"] == 0 and judge["limit"]:
        yield f"the judge's budget of {usd(judge['limit'])} is used up for today"


def _behind(vitals: Mapping[str, Any]) -> Iterator[str]:
    for each in vitals["lag"]:
        if (each["seconds"] or 0.0) > LATE:
            yield (
                f"{words(each['group'])} is behind by {_amount(each['records'], 'record')} of topic {each['topic']}, "
                f"the oldest waits for {duration(each['seconds'])}"
            )
    for each in vitals["sinks"]:
        if each["lost"]:
            yield f"sink {each['name']} lost {_amount(each['lost'], 'signal')}"
        if (each["oldest"] or 0.0) > LATE:
            yield f"sink {each['name']} has not delivered a signal for {duration(each['oldest'])}"


def _clock(ahead: float) -> Iterator[str]:
    if abs(ahead) > APART:
        where = "ahead of" if ahead > 0 else "behind"
        yield (
            f"log time is {duration(abs(ahead))} {where} the machine's clock, which was set; scoring goes on by "
            "elapsed time"
        )


def _amount(count: float, word: str) -> str:
    return amount(round(count), word)


def _found(stacks: Sequence[Row], unscored: Sequence[Row], judge: Row | None) -> Iterator[str]:
    if judge:
        failed = f"{judge['failed']} of {amount(judge['verdicts'], 'verdict')}"
        yield f"the judge fails: {failed}, the newest with {words(judge['type'])}"
    for each in unscored:
        yield f"{each['service']}: no score for {each['sessions']} of {amount(each['of'], 'session')}, {each['why']}"
    for stack in stacks:
        blind = {name for finding in stack["findings"] for name in finding["stops"]}
        if blind:
            lacks = ", ".join(
                finding["says"] or words(finding["lack"]) for finding in stack["findings"]
            )
            yield f"{stack['service']}: {lacks}; {amount(len(blind), 'evaluator')} judge without that"


SCORED = 200
"""The newest sessions of which the page of the evaluators shows the scores: as many as a side of a comparison has."""


class ServicePages(Pages):
    def routes(self) -> list[Route]:
        return [
            Route("/evaluators", self.evaluators),
            Route("/health", self.health),
            Route("/help", self.help),
        ]

    async def evaluators(self, _: Request) -> Response:
        judge = judge_view(self.site.config, self.site.vitals.now()["judge"])
        rows = self.site.about.catalogue()
        agreed = [
            each.shown() for each in self.site.agreements.now if each.agreement.rank is not None
        ]

        def page() -> Response:
            with self.site.index.reading() as reader:
                names = reader.names()
                scores = [scores_of(reader.outcomes(row), names) for row in reader.newest(SCORED)]
                external = reader.externals()
            view: dict[str, Any] = catalogue_view(rows, agreed, scores)
            view["external"] = external
            return self.site.rendering.page(
                "evaluators.html", judge=judge, scored=len(scores), **view
            )

        return await self.site.off_loop.run(page)

    async def help(self, _: Request) -> Response:
        """What each alert means and what to do: where `runbook` of the rules leads, `/help#agentfault`."""
        return await asyncio.to_thread(lambda: self.site.rendering.page("help.html"))

    async def health(self, _: Request) -> Response:
        found = await self.site.findings.now()
        vitals = self.site.vitals.now()  # here: the gauges belong to the event loop
        site = self.site

        def page() -> Response:
            with site.index.reading() as reader:
                forwarded = reader.forwarded_since(micros(site.clock() - 86_400))
            state, roles = site.health.state, site.config.roles
            view = health_view(vitals, found, state=state, roles=roles, forwarded=forwarded)
            return site.rendering.page("health.html", view=view)

        return await asyncio.to_thread(page)
