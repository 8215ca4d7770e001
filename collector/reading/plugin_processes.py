"""Third parties' evaluators in processes of their own, which they may end or hold up: no score of ours waits there.

A job is one evaluator on one trace, so the job on which a process ended or hung names who did it. That one is not
tried again; the jobs behind it lose nothing.
"""

import asyncio
import time

import msgspec

from collector.base.child import Child
from collector.base.families import RuntimeFamilies
from collector.base.plugins import OFF, PluginSwitch
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.reading.port import PluginJob
from collector.reading.processes import Processes, ProcessWorkers, Task
from collector.reading.worker import InlineWorkers
from evaluators.model import Failure, Outcome
from evaluators.plan import Plan
from evaluators.run import failed

LEAST = 2  # processes: while one waits for an evaluator that hangs, another one scores
STARTS = 3  # failed starts that a job waits for: the first may be for want of memory
_UNSTARTABLE = Failure(type="unstartable", message="its process did not start: the log says why")
_outcome = msgspec.msgpack.Decoder(Outcome).decode


class PluginProcesses(Processes):
    """Runs the plan's plug-ins; a process is started for the first job."""

    _runs_plugins = True
    _task = "plug-ins"
    _what = "The process of plug-ins"

    def __init__(self, config: Config, plan: Plan, *, telemetry: Telemetry) -> None:
        """As many processes as there are evaluator workers, but at least LEAST; none without plug-ins."""
        count = max(LEAST, config.worker_count) if plan.plugins else 0
        super().__init__(config, count=count, telemetry=telemetry)
        self._due = {each.spec.name: each for each in plan.plugins}
        self._switch = PluginSwitch()
        RuntimeFamilies(telemetry).show_off(self._due, lambda: self.off)

    @property
    def off(self) -> frozenset[str]:
        return self._switch.off(time.monotonic())

    async def plugin(self, job: PluginJob) -> Outcome:
        """The outcome of the job: `failed` where the evaluator ended its process, took too long or is off."""
        (task,) = await self._answered([job])
        if task.answer is not None:
            return _outcome(task.answer)
        return failed(self._due[job.evaluator], task.lost or _UNSTARTABLE)

    async def _needed(self) -> None:
        await self._any_waits()

    def _is_refused(self, task: Task) -> bool:
        name, now = _evaluator(task), time.monotonic()
        task.timeout = self._switch.limit(name, self._due[name].timeout, now)
        if is_off := self._switch.is_off(name, now):
            task.lost = OFF
            task.resolve(None)
        return is_off

    def _is_answer(self, task: Task, answer: bytes) -> bool:
        try:
            return _outcome(answer).evaluator == _evaluator(task)
        except (msgspec.DecodeError, ValueError):
            return False

    def _is_tried_again(self, task: Task, *, hung: bool) -> bool:
        name = _evaluator(task)
        subject = f"{self._due[name].spec.scope} of `{task.service}`"
        late = task.timeout if hung else None
        task.lost = self._switch.blame(name, subject=subject, late=late)
        return False

    def _note_end(self, number: int, child: Child, reason: str) -> None:
        if reason == "never_up":
            for task in list(self._queue):
                task.attempts += 1
                if task.attempts >= STARTS:
                    task.resolve(None)
        if number not in self._lost:  # else it is said who did it
            super()._note_end(number, child, reason)


def _evaluator(task: Task) -> str:
    assert isinstance(task.job, PluginJob)  # noqa: S101 - the only jobs of this pool
    return task.job.evaluator


class WorkersAndPlugins:
    """The `Workers` port over two pools: of workers of ours, and of third parties' evaluators."""

    def __init__(self, workers: ProcessWorkers | InlineWorkers, plugins: PluginProcesses) -> None:
        self._pools = workers, plugins
        self.read, self.glance, self.plugin = workers.read, workers.glance, plugins.plugin

    @property
    def off(self) -> frozenset[str]:
        return self._pools[1].off

    async def watch(self) -> None:
        async with asyncio.TaskGroup() as watching:
            for pool in self._pools:
                watching.create_task(pool.watch())

    def hasten(self) -> None:
        for pool in self._pools:
            pool.hasten()

    async def close(self) -> None:
        for pool in self._pools:
            await pool.close()
