"""The newest runs of each task, and the pass@k of agents that follows from them. Pure.

The state depends on the set of runs taken in, never on their order, as long as no task is evicted.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from collector.log.state_table import Parts, StateTable
from collector.records.standing import AgentLabels
from collector.records.traces import RunRecord
from collector.watch.ranking.histories import digest_of
from evaluators.formulas.task_runs import Run, TaskPassing, newest, task_passing

Said = Callable[[str, str], bool | None]
"""(service, session id) in; whether feedback says that it succeeded, None where no one says so."""
MAX_TASKS = 4096  # tasks that are remembered, of all agents together


class TaskRuns:
    def __init__(self, *, window: int, most: int = MAX_TASKS, said: Said | None = None) -> None:
        """`window` newest runs of a task count; at most `most` tasks are remembered.

        `said`: feedback that decides runs whose spans do not; None: none does, and undecided runs are not kept.
        """
        self._said = said
        self._window = window
        self._most = most
        self._agents: dict[AgentLabels, dict[str, tuple[Run, ...]]] = {}
        self._passing: dict[AgentLabels, tuple[TaskPassing, ...]] = {}
        self.table: StateTable[tuple[str, str, str], tuple[Run, ...]] = StateTable(
            "task",
            tuple[str, str, str],
            tuple[Run, ...],
            encode=lambda key: self._agents.get(key[:2], {}).get(key[2]),
            restore=self._restore,
        )
        """By labels of the agent and task; the oldest run first."""

    def take(self, run: RunRecord, service: str, agent: str) -> Iterator[AgentLabels]:
        """Take in a run under these labels; yields the agent of each run that was evicted for it."""
        said = None if self._said is None or run.stated else self._said(run.service, run.session_id)
        taken = Run(
            digest_of(run.service, run.session_id),
            run.ended,
            run.success if said is None else said,
            run.stated,
        )
        task = digest_of(run.service, run.agent, run.task_id)
        held = self._agents.get((service, agent), {}).get(task, ())
        runs = newest((*held, taken), self._window)
        if runs != held:
            self._put((service, agent, task), runs)
            self.table.change((service, agent, task))
        return iter(self._evict())

    def keeps(self, run: RunRecord) -> bool:
        """Whether a run is worth taking in: one that nothing can decide is not."""
        return run.success is not None or self._said is not None

    def decide(self, service: str, session_id: str) -> None:
        """Feedback about a session was joined with it: its run, if it has one, may be decided by it."""
        said = None if self._said is None else self._said(service, session_id)
        session = digest_of(service, session_id)
        if said is None:
            return
        for labels, tasks in self._agents.items():
            for task, runs in [*tasks.items()]:
                decides = [each.session == session and not each.stated for each in runs]
                if any(decides):
                    changed = (
                        replace(each, success=said) if decided else each
                        for each, decided in zip(runs, decides, strict=True)
                    )
                    self._put((*labels, task), tuple(changed))
                    self.table.change((*labels, task))

    def forget_agent(self, service: str, agent: str) -> None:
        self._passing.pop((service, agent), None)
        for task in self._agents.pop((service, agent), {}):
            self.table.change((service, agent, task))

    def newest(self) -> dict[AgentLabels, float]:
        return {
            agent: max(runs[-1].ended for runs in tasks.values())
            for agent, tasks in self._agents.items()
            if tasks
        }

    def passing(self) -> Iterator[tuple[AgentLabels, tuple[TaskPassing, ...]]]:
        for agent, tasks in self._agents.items():
            if agent not in self._passing:
                self._passing[agent] = task_passing(tasks.values(), window=self._window)
            yield agent, self._passing[agent]

    def _restore(self, key: tuple[str, str, str], runs: tuple[Run, ...], _parts: Parts) -> None:
        if not runs:
            raise ValueError("a task without runs")
        self._put(key, runs[-self._window :])

    def _put(self, key: tuple[str, str, str], runs: tuple[Run, ...]) -> None:
        agent = key[:2]
        self._agents.setdefault(agent, {})[key[2]] = runs
        self._passing.pop(agent, None)

    def _evict(self) -> list[AgentLabels]:
        """Evict the least recently run tasks of the agent with the most tasks.

        An agent that makes up task ids only evicts its own. Returns the agent of each evicted run.
        """
        evicted: list[AgentLabels] = []
        while sum(map(len, self._agents.values())) > self._most:
            agent, tasks = max(self._agents.items(), key=lambda each: (len(each[1]), each[0]))
            oldest = min(tasks, key=lambda task: (tasks[task][-1].ended, task))
            evicted += [agent] * len(tasks.pop(oldest))
            self._passing.pop(agent, None)
            self.table.change((*agent, oldest))
        return evicted
