"""What the pages show of the running service: its evaluators as configured, and the doctor's findings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from collector.api.about import About, Row
from collector.config.tree import Config
from collector.doctor.diagnosis import ExaminedTrace, Stop, diagnose, examine, stops
from collector.doctor.unscored import failing_judge, session_seen, unscored
from evaluators.declare import Spec
from evaluators.plan import Configured, Plan


def about(
    config: Config,
    specs: Sequence[Spec],
    plan: Plan,
    off: Callable[[], frozenset[str]] = frozenset,
) -> About:
    """For one configuration: `specs` is every evaluator that there is; `off`: whose processes ended too often."""
    redacted = config.redaction.content == "drop"

    def examined(trace: Row, spans: Sequence[Row]) -> object:
        return examine(trace, spans, redacted=redacted)

    def diagnosed(notes: Sequence[object], sessions: Sequence[Row]) -> Row:
        traces = cast(Sequence[ExaminedTrace], notes)
        signals = (
            each for session in sessions for trace in session["traces"] for each in trace["signals"]
        )
        judge = failing_judge(list(signals))
        return {
            **asdict(diagnose(traces, plan=plan, stops=())),
            "unscored": [asdict(each) for each in unscored(map(session_seen, sessions))],
            "judge": judge and asdict(judge),
        }

    def now() -> Sequence[Row]:
        switched_off = off()
        return [{**row, "switched_off": row["name"] in switched_off} for row in rows]

    rows = catalogue(specs, plan, stops(specs, config))
    return About(catalogue=now, examine=examined, diagnose=diagnosed)


def catalogue(specs: Iterable[Spec], plan: Plan, off: Iterable[Stop]) -> list[Row]:
    """Every evaluator, in order of scope and name: as it runs, or why it does not and what would make it."""
    runs = {(each.spec.name, each.spec.method): each for each in plan if each.emit}
    why = {(each.evaluator, each.method): each for each in off}
    every = {(each.name, each.method): each for each in specs}
    every |= {key: each.spec for key, each in runs.items()}
    rows = [_row(spec, runs.get(key), why.get(key)) for key, spec in every.items()]
    return sorted(rows, key=lambda row: (row["scope"] != "trace", row["name"], row["method"]))


def _row(spec: Spec, runs: Configured | None, stop: Stop | None) -> Mapping[str, Any]:
    return {
        "name": spec.name,
        "scope": spec.scope,
        "method": spec.method,
        "version": spec.version,
        "source": spec.source,
        "doc": spec.doc,
        "threshold": spec.threshold if runs is None else runs.threshold,
        "options": dict(spec.options if runs is None else runs.options),
        "runs": runs is not None,
        "is_stand_in": runs is not None and not runs.final,
        "off": None if stop is None else stop.why,
        "setting": None if stop is None else stop.setting,
    }
