"""The table of ranked sessions in docs/evidence.md: how well `work_baseline` and `task_agreement` sort labelled runs.

`python -m scripts.research.ranked_sessions FOLDER`, where FOLDER holds recordings and `labels.json`: by session id,
an object with `success`, `set`, `domain` and `task_id`. Recordings without task ids get those of the labels.
"""

import asyncio
import json
import random
import struct
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service.evaluation import ClosedSession, evaluate_recordings
from collector.service.recordings import find, requests

RANKED = ("work_baseline", "task_agreement")
RESAMPLED = 200
"""How often the tasks are drawn again for an interval."""
MIDDLE = 0.5
"""Of a session without any score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One labelled session."""

    set: str
    task: str
    success: bool
    scores: Mapping[str, float]
    """By evaluator, where it gave one."""

    @property
    def combined(self) -> float:
        """The mean of what there is; MIDDLE where there is nothing."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else MIDDLE


def runs(folder: Path) -> list[Run]:
    """The labelled sessions of the folder; sets that only have one outcome are left out."""
    labels: dict[str, dict[str, Any]] = json.loads((folder / "labels.json").read_text())
    scores: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def closed(session: ClosedSession) -> None:
        for signal in map(msgspec.json.decode, session.signals):
            if signal["score"] is not None:
                scores[signal["session_id"]][signal["evaluator"]] = signal["score"]

    settings = Config(workers=0)
    plan = plan_from(settings, only=RANKED)
    with tempfile.TemporaryDirectory() as copies:
        files = [*_with_tasks(folder, labels, Path(copies))]
        asyncio.run(evaluate_recordings(settings, plan, files, lambda _: None, closed))
    found = [
        Run(
            set=label["set"],
            task=f"{label['set']}/{label['task_id']}",
            success=bool(label["success"]),
            scores=scores[session],
        )
        for session, label in labels.items()
    ]
    outcomes: defaultdict[str, set[bool]] = defaultdict(set)
    for each in found:
        outcomes[each.set].add(each.success)
    return [each for each in found if len(outcomes[each.set]) > 1]


def _with_tasks(folder: Path, labels: Mapping[str, Any], to: Path) -> Iterator[Path]:
    """Copies of the recordings whose spans name the task of their session."""
    for path in find([folder]).files:
        copy = to / path.relative_to(folder).as_posix().replace("/", "-").removesuffix(".gz")
        with copy.open("wb") as file:
            for request in requests(path):
                message = ExportTraceServiceRequest.FromString(request)
                for resource in message.resource_spans:
                    for scope in resource.scope_spans:
                        for span in scope.spans:
                            _name_task(span, labels)
                content = message.SerializeToString()
                file.write(struct.pack(">I", len(content)) + content)
        yield copy


def _name_task(span: Span, labels: Mapping[str, Any]) -> None:
    attributes = {each.key: each.value.string_value for each in span.attributes}
    label = labels.get(attributes.get("session.id", ""))
    if label is not None and "spanwise.task.id" not in attributes:
        task = f"{label['domain']}/{label['task_id']}"
        span.attributes.add(key="spanwise.task.id").value.string_value = task


def auroc(scored: Sequence[tuple[float, bool]]) -> float | None:
    """The chance that a session that failed scores below one that succeeded; ties count half."""
    good = sorted(score for score, success in scored if success)
    bad = [score for score, success in scored if not success]
    if not good or not bad:
        return None
    above = sum(
        len(good) - 0.5 * (bisect_left(good, score) + bisect_right(good, score)) for score in bad
    )
    return above / (len(good) * len(bad))


def interval(found: Sequence[Run], name: str) -> str:
    """AUROC with its 95 % interval over tasks drawn again."""
    value = auroc(_scored(found, name))
    if value is None:
        return ""
    by_task: defaultdict[str, list[Run]] = defaultdict(list)
    for each in found:
        by_task[each.task].append(each)
    tasks, draw = [*by_task.values()], random.Random(7)  # noqa: S311 - the same table every time
    again = sorted(
        each
        for _ in range(RESAMPLED)
        if (
            each := auroc(
                _scored([r for some in draw.choices(tasks, k=len(tasks)) for r in some], name)
            )
        )
        is not None
    )
    low, high = again[round(0.025 * len(again))], again[round(0.975 * len(again)) - 1]
    return f"{value:.3f} [{low:.2f}-{high:.2f}]"


def _scored(found: Sequence[Run], name: str) -> list[tuple[float, bool]]:
    if name == "combined":
        return [(each.combined, each.success) for each in found]
    return [(each.scores[name], each.success) for each in found if name in each.scores]


def table(found: Sequence[Run]) -> str:
    """In Markdown: a row for each set, and one for all."""
    head = (
        "| runs | sessions | failed | `work_baseline`: scored, AUROC | `task_agreement`: scored, AUROC"
        " | mean of both, all sessions |"
    )
    lines = [head, "|---|---|---|---|---|---|"]
    sets: defaultdict[str, list[Run]] = defaultdict(list)
    for each in found:
        sets[each.set].append(each)
    for name, some in [*sorted(sets.items()), ("**all**", [*found])]:
        failed = sum(not each.success for each in some)
        cells = [name, str(len(some)), str(failed)]
        for evaluator in RANKED:
            share = len(_scored(some, evaluator)) / len(some)
            cells.append(f"{share:.0%}, {interval(some, evaluator)}" if share else "none")
        lines.append(f"| {' | '.join([*cells, interval(some, 'combined')])} |")
    return "\n".join(lines)


def shares(found: Sequence[Run]) -> str:
    """How many fail of all runs, of the tenth that is ranked riskiest, and of the fifth that is ranked safest."""
    ranked = sorted(found, key=lambda each: each.combined)
    tenth, fifth = ranked[: len(ranked) // 10], ranked[-len(ranked) // 5 :]
    whole, risky, safe = (
        sum(not each.success for each in some) / max(1, len(some))
        for some in (ranked, tenth, fifth)
    )
    return f"Failed: {whole:.0%} of all, {risky:.0%} of the riskiest tenth, {safe:.0%} of the safest fifth."


if __name__ == "__main__":
    _found = runs(Path(sys.argv[1]))
    sys.stdout.write(f"{table(_found)}\n\n{shares(_found)}\n")
