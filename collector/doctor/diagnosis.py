"""From traces to findings: per service and stack, what lacks, whom it stops, and what to set. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from collector.doctor.examined_trace import ExaminedTrace
from collector.doctor.needs import Stop, weakened_by
from evaluators.declare import Spec
from evaluators.dialects.advice import LACKS, Advice, Lack
from evaluators.dialects.advise import advise
from evaluators.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One lack of one stack."""

    lack: Lack
    traces: int
    """How many of the stack's turns lack it."""
    stops: tuple[str, ...]
    """Evaluators that cannot say all they could on those traces."""
    example: str
    """A trace id."""
    advice: tuple[Advice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Traces of one service that speak the same dialects."""

    service: str
    dialects: tuple[str, ...]
    scopes: tuple[str, ...]
    sdks: tuple[str, ...]
    traces: int
    turns: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything the doctor has to say."""

    stacks: tuple[Stack, ...]
    stops: tuple[Stop, ...]
    """Evaluators that the configuration or the spans keep from running at all, whatever the stack."""


def diagnose(traces: Iterable[ExaminedTrace], *, plan: Plan, stops: Sequence[Stop]) -> Diagnosis:
    """What is missing in these traces, for the evaluators of `plan`."""
    stacks: dict[tuple[str, tuple[str, ...]], list[ExaminedTrace]] = {}
    for each in traces:
        stacks.setdefault((each.service, each.dialects), []).append(each)
    specs = tuple(c.spec for c in (*plan.trace, *plan.session, *plan.judged))
    made = [
        _stack(service, dialects, found, specs) for (service, dialects), found in stacks.items()
    ]
    return Diagnosis(
        stacks=tuple(sorted(made, key=lambda stack: (stack.service, stack.dialects))),
        stops=tuple(stops),
    )


def _stack(
    service: str, dialects: tuple[str, ...], found: Sequence[ExaminedTrace], specs: Sequence[Spec]
) -> Stack:
    turns = [each for each in found if each.is_turn]
    scopes = tuple(sorted({scope for each in found for scope in each.scopes}))
    by_lack: Mapping[Lack, list[ExaminedTrace]] = {
        lack: [each for each in turns if lack in each.lacks] for lack in LACKS
    }
    return Stack(
        service=service,
        dialects=dialects,
        scopes=scopes,
        sdks=tuple(sorted({sdk for each in found for sdk in each.sdks})),
        traces=len(found),
        turns=len(turns),
        findings=tuple(
            Finding(
                lack=lack,
                traces=len(lacking),
                stops=tuple(sorted(weakened_by(lack, specs))),
                example=lacking[0].trace_id,
                advice=advise(lack, scopes=scopes, dialects=dialects),
            )
            for lack, lacking in by_lack.items()
            if lacking
        ),
    )
