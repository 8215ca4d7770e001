"""Worker processes: what they get, and the pool at a stop, when no process is started, or one that Ctrl-C reaches."""

import asyncio
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import msgspec
import pytest

from collector.base.child import Child
from collector.base.errors import Retryable
from collector.base.telemetry import Telemetry
from collector.base.watch import PartEnded
from collector.config.plan import checked_plan, plan_from
from collector.config.tree import Config
from collector.reading import processes
from collector.reading.port import ReaderSettings, ReadJob, reader_settings
from collector.reading.processes import ProcessWorkers

CONFIG = Config.model_validate({"embedder": {"kind": "none"}})


def job() -> ReadJob:
    return ReadJob(trace_id=b"1" * 16, pieces=(), closed="root_ended", service="bot")


async def test_jobs_that_are_not_answered_at_a_stop_fail_and_wait_in_the_log() -> None:
    pool = ProcessWorkers(config=CONFIG, plan=plan_from(CONFIG), count=1, telemetry=Telemetry())
    asked = asyncio.ensure_future(pool.read([job(), job()]))
    await asyncio.sleep(0)

    pool.hasten(within=0.0)

    async with asyncio.timeout(5):
        with pytest.raises(Retryable):
            await asked
        with pytest.raises(Retryable):
            await pool.read([job()])
    await pool.close()


async def test_a_caller_that_is_cancelled_is_cancelled() -> None:
    pool = ProcessWorkers(config=CONFIG, plan=plan_from(CONFIG), count=1, telemetry=Telemetry())
    asked = asyncio.ensure_future(pool.read([job()]))
    await asyncio.sleep(0)

    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked
    await pool.close()


class EndsAtStart(Child):
    """A child that ends before it is ready."""

    code: int

    async def __aenter__(self) -> Self:
        raise EOFError

    @property
    def exit_code(self) -> int | None:
        return self.code


@pytest.mark.parametrize(
    ("code", "level"), [(-signal.SIGINT, "INFO"), (-signal.SIGKILL, "ERROR"), (1, "ERROR")]
)
async def test_a_worker_that_ctrl_c_ends_as_it_starts_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, level: str
) -> None:
    monkeypatch.setattr(EndsAtStart, "code", code, raising=False)
    monkeypatch.setattr(processes, "Child", EndsAtStart)
    caplog.set_level(logging.INFO)
    pool = ProcessWorkers(config=CONFIG, plan=plan_from(CONFIG), count=1, telemetry=Telemetry())

    pool.start()
    while not caplog.records:  # noqa: ASYNC110 - a few turns of the loop
        await asyncio.sleep(0)
    await pool.close()

    assert [each.levelname for each in caplog.records] == [level]


@pytest.mark.process
@pytest.mark.parametrize(
    ("mode", "said"), [(None, "No such file or directory"), (0o644, "Permission denied")]
)
async def test_a_worker_that_cannot_be_executed_says_at_once_what_the_system_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: int | None,
    said: str,
) -> None:
    python = tmp_path / "python"
    if mode is not None:
        python.touch(mode)
    monkeypatch.setattr(sys, "executable", str(python))
    pool = ProcessWorkers(config=CONFIG, plan=plan_from(CONFIG), count=1, telemetry=Telemetry())

    pool.start()
    async with asyncio.timeout(10):
        while not caplog.records:  # noqa: ASYNC110 - the system answers at once
            await asyncio.sleep(0.01)
    await pool.close()

    line, *_ = caplog.messages
    assert line.startswith("Evaluator worker 0 cannot be started: ")
    assert said in line


async def test_the_end_of_a_task_that_keeps_a_worker_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its worker was never replaced, and with the last one everything stood still."""

    class Unforeseen(Child):
        async def __aenter__(self) -> Self:
            raise KeyError("which")

    monkeypatch.setattr(processes, "Child", Unforeseen)
    pool = ProcessWorkers(config=CONFIG, plan=plan_from(CONFIG), count=2, telemetry=Telemetry())
    pool.start()

    async with asyncio.timeout(5):
        with pytest.raises(PartEnded, match=r"`worker [01]` has ended") as ended:
            await pool.watch()

    assert isinstance(ended.value.__cause__, KeyError)
    await pool.close()


# --- a worker gets its settings, not the configuration ---------------------------------------------------------------


UNUSED = ("pydantic", "asyncio", "ssl", "numpy", "jsonschema")


@pytest.mark.process
def test_a_plan_is_the_same_where_its_settings_arrive(tmp_path: Path) -> None:
    plugin, expectations = tmp_path / "mine.py", tmp_path / "expected.json"
    plugin.write_text(
        "from evaluators import Score, Trace, evaluator\n\n"
        '@evaluator(version="1")\n'
        "def loud(trace: Trace, *, most: float = 0.5) -> Score:\n"
        '    """How loud it is."""\n'
        "    return Score(value=most)\n"
    )
    expectations.write_text("[]")
    config = Config.model_validate(
        {
            "plugins": [str(plugin)],
            "expectations": str(expectations),
            "evaluators": {
                "mine/loud": {"threshold": 0.25, "most": 10**30},
                "confidence": {"enabled": False},
            },
            "judges": {"polite": {"rubric": "Is it polite?", "threshold": 0.9}},
            "judge": {"model": "openai/some-model"},
            "attributes": {"session": ["my.session"]},
            "tasks": {"read_only": ["find"]},
            "redaction": {"patterns": {"mail": "email", "mine": "x+y"}, "key": "eight or more"},
        }
    )

    found: dict[str, str] = {}
    for package in ("", "mine"):  # each process has what concerns its evaluators
        settings = reader_settings(config, package)
        arrived = msgspec.json.decode(msgspec.json.encode(settings), type=ReaderSettings)
        assert arrived == settings
        found |= {
            each.spec.name: each.options_digest
            for each in checked_plan(arrived.plan)
            if each.spec.name.startswith("mine/") == bool(package)
        }
    assert found == {each.spec.name: each.options_digest for each in plan_from(config)}


@pytest.mark.process
def test_a_worker_starts_without_the_libraries_that_it_does_not_use() -> None:
    code = (
        "import sys, collector.reading.worker; "
        f"print([each for each in {UNUSED!r} if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
