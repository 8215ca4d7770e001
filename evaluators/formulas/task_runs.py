"""Task runs: how reliably the same task succeeds when it is tried repeatedly."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from evaluators.formulas.pass_k import combinatorial_pass_at_k, combinatorial_pass_pow_k

KS = (1, 3, 5)  # attempts for which pass@k and pass^k are given


class Run(msgspec.Struct, frozen=True, array_like=True):
    """One run of a task. Stored by order: append only."""

    session: str
    ended: float  # log time of its end: the newest runs of a task count
    success: bool | None  # None: nothing decides it yet; such a run counts for nothing
    stated: bool = False  # whether its own spans say it


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPassing:
    """pass@k and pass^k of an agent's tasks: means over the tasks with at least k runs."""

    k: int
    tasks: int  # tasks with at least k runs
    left_out: int  # tasks with fewer
    pass_at_k: float | None  # 1 - C(n-c, k) / C(n, k), the mean over tasks; None without any task
    pass_pow_k: float | None  # c(c, k) / C(n, k), the mean over tasks; None without any task


def succeeded(stated: bool | None, judged: bool | None) -> bool | None:
    """Whether a run succeeded: as the trace states, else as the evaluator of `tasks.evaluator` found; None: unknown."""
    return judged if stated is None else stated


def newest(runs: Iterable[Run], window: int) -> tuple[Run, ...]:
    """The newest `window` runs of a task, oldest first; a session counts once, at its last end."""
    last = {run.session: run for run in sorted(runs, key=_age)}
    return tuple(sorted(last.values(), key=_age)[-window:])


def task_passing(
    tasks: Iterable[Iterable[Run]], *, window: int = 20, ks: Sequence[int] = KS
) -> tuple[TaskPassing, ...]:
    """Of an agent's tasks, one entry per k. `window`: newest runs of a task that count, >= 1."""
    counts = [_decided(newest(runs, window)) for runs in tasks]
    return tuple(_passing(counts, k) for k in ks)


def _decided(runs: Iterable[Run]) -> tuple[int, int]:
    known = [run.success for run in runs if run.success is not None]
    return len(known), sum(known)


def _passing(tasks: Sequence[tuple[int, int]], k: int) -> TaskPassing:
    enough = [(n, c) for n, c in tasks if n >= k]
    return TaskPassing(
        k=k,
        tasks=len(enough),
        left_out=len(tasks) - len(enough),
        pass_at_k=_mean([combinatorial_pass_at_k(n, c, k) for n, c in enough]),
        pass_pow_k=_mean([combinatorial_pass_pow_k(n, c, k) for n, c in enough]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _age(run: Run) -> tuple[float, str, bool]:
    return run.ended, run.session, bool(run.success)
