"""Third parties' evaluators in processes of their own, which they may end or hold up: no score of ours waits there.

Each third party has its own, so that what one spoils in its process concerns no other. A job is one evaluator on one
subject, and a process has one at a time: the job on which it ended or hung names who did it. That one is not tried
again; the jobs behind it lose nothing.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from collector.base.child import Child
from collector.base.plugins import OFF, PluginSwitch
from collector.reading.port import PluginJob
from collector.reading.processes import Processes, ProcessWorkers, Task
from collector.reading.worker import InlineWorkers
from evaluators.model import Failure, Outcome
from evaluators.plan import Configured
from evaluators.run import failed

LEAST = 2  # processes for all third parties together: few have more than one
SPARE = 4  # processes beside a third party's others, while these are held up: each of four that hang has one
HELD_UP = 1.0  # seconds of one job, from which on its process counts as held up
STARTS = 3  # failed starts that a job waits for: the first may be for want of memory
_UNSTARTABLE = Failure(type="unstartable", message="its process did not start: the log says why")
_outcome = msgspec.msgpack.Decoder(Outcome).decode


@dataclass(kw_only=True)
class PluginProcesses(Processes):
    """Runs the evaluators of one third party; a process is started for the first job."""

    due: Mapping[str, Configured]  # its evaluators by name
    least: int  # of processes that wait for no other to be held up
    switch: PluginSwitch

    _task = "plug-ins"
    _meanwhile = "its evaluators say nothing until one starts"
    _one_by_one = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._what = f"The process of `{self.package}`"
        self._busy: dict[int, float] = {}  # number of a process -> since when it has its job

    async def plugin(self, job: PluginJob) -> Outcome:
        """The outcome of the job: `failed` where the evaluator ended its process, took too long or is off."""
        (task,) = await self._answered([job])
        if (answer := task.answer.result()) is not None:
            return _outcome(answer)
        return failed(self.due[job.evaluator], task.lost or _UNSTARTABLE)

    async def _needed(self, number: int) -> None:
        await self._any_waits()
        while number >= self.least and not self._are_held_up(number):
            await asyncio.sleep(HELD_UP / 4)
            await self._any_waits()

    def _are_held_up(self, others: int) -> bool:
        late = asyncio.get_running_loop().time() - HELD_UP
        return all(self._busy.get(each, late + 1) <= late for each in range(others))

    async def _send(self, number: int, child: Child, tasks: list[Task]) -> int:
        self._busy[number] = asyncio.get_running_loop().time()
        try:
            return await super()._send(number, child, tasks)
        finally:
            del self._busy[number]

    def _is_refused(self, task: Task) -> bool:
        name = _evaluator(task)
        task.timeout = self.switch.limit(name, self.due[name].timeout)
        if is_off := name in self.switch.off:
            task.lost = OFF
            task.resolve(None)
        return is_off

    def _check(self, task: Task, answer: bytes) -> None:
        try:
            is_answer = _outcome(answer).evaluator == _evaluator(task)
        except (msgspec.DecodeError, ValueError) as error:
            raise EOFError from error
        if not is_answer:
            raise EOFError

    def _is_tried_again(self, task: Task, *, hung: bool) -> bool:
        name = _evaluator(task)
        subject = f"{self.due[name].spec.scope} of `{task.service}`"
        late = task.timeout if hung else None
        task.lost = self.switch.blame(name, subject=subject, late=late)
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
    """The `Workers` port over pools: of workers of ours, and of each third party's evaluators."""

    def __init__(
        self,
        workers: ProcessWorkers | InlineWorkers,
        plugins: Mapping[str, PluginProcesses],
    ) -> None:
        self._pools = (workers, *plugins.values())
        self._plugins = plugins
        self.read, self.glance = workers.read, workers.glance

    async def plugin(self, job: PluginJob) -> Outcome:
        return await self._plugins[job.evaluator.rpartition("/")[0]].plugin(job)

    async def watch(self) -> None:
        async with asyncio.TaskGroup() as watching:
            for pool in self._pools:
                watching.create_task(pool.watch())

    def hasten(self) -> None:
        for pool in self._pools:
            pool.hasten()

    async def close(self) -> None:
        async with asyncio.TaskGroup() as closing:
            for pool in self._pools:
                closing.create_task(pool.close())
