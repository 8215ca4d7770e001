"""Two versions of an agent, compared: what `/api/v1/compare` and `spanwise compare` say. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

from collector.records.standing import WORST, Fault
from collector.records.what_changed import ToolCounts, failing_more
from collector.records.windows import VersionLooksRecord, WindowEntry
from evaluators.counts import amount
from evaluators.formulas.distribution import bounds
from evaluators.formulas.fault_watch import Cause
from evaluators.formulas.release_verdict import LOOKS, MARGIN, Look, Z, release_verdict

EVALUATOR = "agent_reliability"  # compared unless another one is named
NEWEST = 3  # failed sessions of a fault that say whose it is
STRICT = NormalDist().inv_cdf(1 - 0.012 / len(LOOKS)) / Z
"""How much further than the bound of the free scores that of the judge lies, by which a release fails for it alone."""


class ScoredSession(NamedTuple):
    session: str
    score: float


class VersionSide(NamedTuple):
    name: str | None  # None: its sessions name none, or several
    sessions: Sequence[ScoredSession]  # in the order in which they came
    left_out: int = 0  # sessions of which too little is seen for a score

    @property
    def scores(self) -> list[float]:
        return [each.score for each in self.sessions]


def version_of(name: str, entries: Sequence[WindowEntry]) -> VersionSide:
    ordered = sorted(entries, key=lambda each: each.age)
    covered = [ScoredSession(each.session, each.score) for each in ordered if each.covered]
    return VersionSide(name, covered, left_out=len(ordered) - len(covered))


def before(candidate: str, versions: Mapping[str, Sequence[WindowEntry]]) -> str | None:
    """The version with the most sessions before the candidate's first; None: there is no other."""
    first = min((each.age for each in versions.get(candidate, ())), default=None)
    counts = {
        name: sum(first is None or each.age < first for each in entries)
        for name, entries in versions.items()
        if name != candidate
    }
    found = max(counts, key=lambda name: (counts[name], name), default=None)
    return found if found is not None and (counts[found] or first is None) else None


class VersionWindow(NamedTuple):
    entries: Sequence[WindowEntry]
    looks: VersionLooksRecord | None = None  # None: it has just been seen for the first time


def comparison(
    candidate: VersionSide,
    baseline: VersionSide,
    *,
    service: str | None,
    agent: str | None,
    evaluator: str = EVALUATOR,
    margin: float = MARGIN,
    threshold: float | None = None,
    looks: Sequence[Look] | None = None,
) -> dict[str, Any]:
    """The verdict, with both sides and the candidate's worst sessions. `threshold`: below it a session failed.

    `looks`: all that were taken of the candidate beside this baseline; None: they are taken now.
    """
    found = release_verdict(
        candidate.scores,
        baseline.scores,
        margin=margin,
        left_out=candidate.left_out,
        taken=looks,
    )
    rank = found.rank
    seen = candidate.sessions[: found.used or None]
    known = baseline.scores
    low = threshold if threshold is not None else math.fsum(known) / len(known) if known else 0.0
    return {
        "verdict": found.verdict,
        "reason": found.reason,
        "passed": found.verdict == "pass",
        "failed": found.verdict == "fail",
        "service": service,
        "agent": agent,
        "evaluator": evaluator,
        "decided_by": None if found.verdict == "inconclusive" else evaluator,
        "judged": None,
        "baseline": _side(baseline, threshold),
        "candidate": {**_side(candidate, threshold), "used": found.used},
        "rank": rank and round(rank.value, 4),
        "rank_lower": rank and round(rank.lower, 4),
        "rank_upper": rank and round(rank.upper, 4),
        "next_look": found.next_look,
        "sessions": [
            each.session
            # Those that failed, or without a threshold are below the baseline's mean.
            for each in sorted(seen, key=lambda each: (each.score, each.session))[:WORST]
            if each.score < low
        ],
    }


def with_judged(found: dict[str, Any], judged: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict of the free scores with that of the judge beside it: the judge decides where these do not.

    Where it sees a loss, the release fails whatever they say, by a stricter bound: two tests must not raise twice as
    many false alarms.
    """
    names = ("evaluator", "verdict", "rank", "rank_lower", "rank_upper")
    shown = {name: judged[name] for name in names} | {"used": judged["candidate"]["used"]}
    rank, upper = judged["rank"], judged["rank_upper"]
    fails = judged["failed"] and rank + STRICT * (upper - rank) < 0.5
    decides = fails and not found["failed"]
    if found["verdict"] == "inconclusive" and found["reason"] != "low_coverage":
        decides = decides or judged["passed"]
    if not decides:
        return {**found, "judged": shown}
    verdict = {name: judged[name] for name in ("verdict", "passed", "failed", "next_look")}
    decided = {"reason": None, "judged": shown, "decided_by": judged["evaluator"]}
    return {**found, **verdict, **decided}


def with_faults(
    found: dict[str, Any],
    changed: Mapping[str, Any] | None,
    faults: Iterable[Fault] = (),
    counted: Mapping[Cause, ToolCounts] | None = None,
) -> dict[str, Any]:
    """The verdict where the candidate has a fault that the baseline lacks: `fail`, whatever the ranks say.

    Ranks see such a fault late or never: a tool that fails in every session may cost a score little. `found`: the
    verdict by ranks; one that names a fault stays. `counted`: what the fault watches counted of the two. `changed`:
    what changed between the two (`records.what_changed`); None: unknown, or `counted` decides. `faults`: those that
    stand and that the candidate's uses raised.
    """
    known = release_faults(counted or {}, faults)
    tools = () if changed is None else changed["tools"]
    reasons = [_reason(*cause, **each.numbers) for cause, each in known.items()]
    reasons += [
        _reason("tool_failed", each["tool"], **{name: each[name] for name in _COUNTS})
        for each in tools
    ]
    if not reasons or (found["failed"] and found["reason"]):
        return found
    fail = {"verdict": "fail", "passed": False, "failed": True, "next_look": None}
    fail["decided_by"] = None
    return {**found, **fail, "reason": reasons[0]}


def release_faults(
    counted: Mapping[Cause, ToolCounts], faults: Iterable[Fault]
) -> dict[Cause, ToolCounts]:
    """By (fault, tool), what fails a release, the clearest first; `counted` and `faults` as of `with_faults`."""
    found = dict(failing_more(counted, clumped=True))
    servers: dict[Cause, ToolCounts] = {}
    for each in faults:
        of = ToolCounts.of(each)
        if each.tools:  # a server takes the place of its tools, with the counts of the clearest
            known = [found.pop(("tool_failed", tool), None) for tool in each.tools]
            servers[each.fault, each.tool] = next((count for count in known if count), of)
        elif each.pages:
            found.setdefault((each.fault, each.tool), of)
    return {**servers, **found}


_COUNTS = ("uses", "failures", "uses_before", "failures_before")


def _reason(
    fault: str, tool: str, *, uses: int, failures: int, uses_before: int, failures_before: int
) -> str:
    name = f"{fault} {tool}".rstrip()
    return (
        f"fault: {name}, {failures} of {uses} sessions, {failures_before} of {uses_before} before"
    )


def raised_by(
    faults: Iterable[Fault], candidate: Iterable[ScoredSession], baseline: Iterable[ScoredSession]
) -> list[Fault]:
    """The faults whose newest sessions are the candidate's, and none the baseline's."""
    mine, others = ({each.session for each in side} for side in (candidate, baseline))
    return [
        each
        for each in faults
        if not mine.isdisjoint(each.sessions[:NEWEST]) and others.isdisjoint(each.sessions[:NEWEST])
    ]


def in_words(found: Mapping[str, Any]) -> str:
    candidate, baseline = found["candidate"], found["baseline"]
    why = f" ({found['reason']})" if found["reason"] else ""
    rank = "" if found["rank"] is None else f", rank {found['rank']:.2f}"
    looks = "" if found["next_look"] is None else f"; next look at {found['next_look']} sessions"
    used, samples = candidate["used"] or candidate["samples"], candidate["samples"]
    over = amount(used, "session") if used == samples else f"the first {used} of {samples} sessions"
    judged = found.get("judged")  # a service of before says none
    by = _judged(judged) if judged and found["decided_by"] == judged["evaluator"] else ""
    return (
        f"{found['verdict']}{why}: {found['evaluator']} of {candidate['version'] or 'the new version'} over {over}"
        f" against {baseline['samples']} of {baseline['version'] or 'the old one'}{rank}{looks}{by}"
    )


def _judged(found: Mapping[str, Any]) -> str:
    return f"; decided by the judge: {found['evaluator']} over {found['used']} sessions, rank {found['rank']:.2f}"


def _side(version: VersionSide, threshold: float | None) -> dict[str, Any]:
    scores = version.scores
    interval = bounds(sorted(scores))
    failed = None if threshold is None else sum(each < threshold for each in scores)
    return {
        "version": version.name,
        "samples": len(scores),
        "mean": interval and round(interval.mean, 4),
        "lower": interval and round(interval.lower, 4),
        "upper": interval and round(interval.upper, 4),
        "fail_ratio": round(failed / len(scores), 4) if scores and failed is not None else None,
    }
