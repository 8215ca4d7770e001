"""Task runs: how reliably the same task succeeds when it is tried repeatedly."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluators.formulas.pass_k import combinatorial_pass_at_k, combinatorial_pass_pow_k

KS = (1, 3, 5)  # attempts for which pass@k and pass^k are given


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    service: str
    agent: str
    task_id: str
    session_id: str
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


def newest(runs: Iterable[Run], window: int) -> dict[tuple[str, str, str], tuple[Run, ...]]:
    """The newest `window` runs of each (service, agent, task), oldest first; a session counts once, at its last end."""
    last: dict[tuple[str, str, str, str], Run] = {}
    for run in runs:
        key = (run.service, run.agent, run.task_id, run.session_id)
        if key not in last or _age(run) > _age(last[key]):
            last[key] = run
    by_task: dict[tuple[str, str, str], list[Run]] = {}
    for run in sorted(last.values(), key=_age):
        by_task.setdefault((run.service, run.agent, run.task_id), []).append(run)
    return {key: tuple(some[-window:]) for key, some in by_task.items()}


def task_passing(
    runs: Iterable[Run], *, window: int = 20, ks: Sequence[int] = KS
) -> Mapping[tuple[str, str], tuple[TaskPassing, ...]]:
    """By (service, agent), one entry per k. `window`: newest runs of a task that count, >= 1."""
    counts: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for (service, agent, _), some in sorted(newest(runs, window).items()):
        counts.setdefault((service, agent), []).append(decided(some))
    return {key: tuple(passing(tasks, k) for k in ks) for key, tasks in counts.items()}


def decided(runs: Iterable[Run]) -> tuple[int, int]:
    known = [run.success for run in runs if run.success is not None]
    return len(known), sum(known)


def passing(tasks: Sequence[tuple[int, int]], k: int) -> TaskPassing:
    """Of one agent's tasks, each as (runs, successes) with 0 <= successes <= runs."""
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
    return run.ended, run.session_id, bool(run.success)
