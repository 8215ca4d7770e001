"""A judge that fails while a drop stands has no opinion, and has one once it answers again."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import msgspec
import pytest

from collector.config.plan import checked_plan, plan_settings
from collector.config.tree import Config, JudgeConfig
from collector.judging.answer_cache import AnswerCache
from collector.judging.child import JudgeJobRunner
from collector.judging.judge_client import BudgetGate, JudgeClientPool
from collector.judging.port import FromJudge, ReserveBudget, TraceJob
from evaluators.model import Outcome
from evaluators.providers.litellm import LiteLlmJudge
from tests.support.evaluating import a_trace
from tests.support.openai_server import Mode, OpenAiServer
from tests.support.opinions import AGENT, GOOD, SETTLE, Story

pytestmark = pytest.mark.process  # the client of OpenAI asks `uname`, once

ASKED = "the judge is asked: 0 of 40 sessions judged, no verdict yet; 5 have no answer"
FAILS: dict[Mode, str] = {
    "429": "rate_limited",
    "500": "provider_error",
    "400": "provider_error",
    "garbage": "parse_error",
    "half": "parse_error",
    "wrong_types": "parse_error",
    "nan": "parse_error",
    "slow": "timeout",
}


class Judge:
    """What the judge process runs, within this one: jobs beyond the sample, asked by litellm over HTTP."""

    def __init__(self, folder: Path, server: OpenAiServer, *, timeout: float = 60.0) -> None:
        config = Config(judge=JudgeConfig(model="openai/test-judge", attempts=2))
        settings = plan_settings(config)
        self._gate = BudgetGate(self._grant)
        provider = LiteLlmJudge(
            timeout=timeout, temperature=0.0, base_url=server.url, api_key="none"
        )
        pool = JudgeClientPool(
            provider=provider,
            gate=self._gate,
            cache=AnswerCache(folder, 0),
            judge=config.judge,
            sleep=lambda _: asyncio.sleep(0),
        )
        judged = checked_plan(settings, ["task_completion"]).judged
        self._runner = JudgeJobRunner(config, pool, judged, settings)

    def _grant(self, frame: FromJudge) -> None:
        if isinstance(frame, ReserveBudget):
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: self._gate.reply(frame.id, granted=True))

    async def of(self, sessions: range) -> Sequence[Outcome]:
        """An outcome of each."""
        jobs = [
            TraceJob(
                id=number,
                owner=f"subject {number}",
                service="bot",
                more=True,
                trace=msgspec.Raw(
                    msgspec.msgpack.encode(a_trace(input=f"What of {number}?", output="This."))
                ),
            )
            for number in sessions
        ]
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._runner.run(each)) for each in jobs]
        return [outcome for each in asked for outcome in each.result().outcomes]


def dropped() -> Story:
    story = Story()
    story.judged(GOOD)
    story.drop()
    return story


@pytest.mark.parametrize("mode", [*FAILS, "away"])
async def test_one_that_fails_has_no_opinion_and_the_ticket_stays(
    tmp_path: Path, mode: Mode | Literal["away"]
) -> None:
    story = dropped()
    server = OpenAiServer("good" if mode == "away" else mode, delay=5.0)
    judge = Judge(tmp_path, server, timeout=0.3 if mode == "slow" else 60.0)
    with server:
        early = None if mode == "away" else await judge.of(range(5))
    found = early or await judge.of(range(5))
    for each in found:
        story.outcome(each)
    story.look(after=SETTLE)

    error = "provider_error" if mode == "away" else FAILS[mode]
    assert Counter(each.error and each.error.type for each in found) == {error: 5}
    assert story.words == ASKED
    assert story.opinions.shown()[AGENT].verdict == "undecided"


async def test_it_has_an_opinion_once_it_answers_again(tmp_path: Path) -> None:
    story = dropped()
    with OpenAiServer("500") as server:
        judge = Judge(tmp_path, server)
        for numbers in (range(5), range(5, 25)):
            for each in await judge.of(numbers):
                story.outcome(each)
            server.mode, server.low = "good", "What of"
    story.look(after=SETTLE)
    assert story.words == "the judge agrees: task_completion 0.88 -> 0.20 over 20 sessions"


class Fickle(OpenAiServer):
    """Of whatever it has judged with two calls it says the opposite from then on."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: Counter[str] = Counter()
        self._one = Lock()

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """See `OpenAiServer`."""
        with self._one:
            (subject,) = {*re.findall(r"What of \d+", str(body["messages"]))}
            self._calls[subject] += 1
            self.low = "What of" if self._calls[subject] > 2 else None
            return super().chat(body)


async def test_one_that_contradicts_itself_has_no_opinion(
    tmp_path: Path,
) -> None:
    story = Story()
    story.judged([0.7, 0.9] * 20)
    story.drop()
    with Fickle() as server:
        for each in await Judge(tmp_path, server).of(range(44)):
            story.outcome(each)
    story.look(after=SETTLE)
    assert story.words == "the judge has no opinion: it does not agree with itself"
    assert story.opinions.shown()[AGENT].verdict == "undecided"
