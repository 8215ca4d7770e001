"""A judge's provider fails in every way known: each verdict that can arrive does, each other has a reason in words."""

import asyncio
import gc
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.config.tree import JudgeConfig
from collector.judging.answer_cache import AnswerCache
from collector.judging.judge_client import BudgetGate, JudgeClientPool
from collector.judging.port import FromJudge, ReserveBudget
from evaluators.judging.answer_schema import object_schema
from evaluators.judging.answers import read_object
from evaluators.judging.prompt import JudgeError, Prompt
from evaluators.providers import litellm
from evaluators.providers.error_facts import WORDS
from evaluators.providers.litellm import LiteLlmJudge
from tests.support.loopback import Body, LoopbackServer, Reply
from tests.support.provider_ways import (
    ALL,
    NONE,
    Way,
    always,
    every_second,
    first,
    good,
    has_schema,
    refusal,
    where,
)


class ProviderServer(LoopbackServer):
    """Serves one way; remembers what it was asked."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.asked: list[Body] = []
        """Bodies in the order of their arrival."""
        self.paths: list[str] = []
        self._way = way
        self._lock = threading.Lock()

    def reply(self, path: str, asked: Body) -> Reply:
        """In the words of the API."""
        if path.endswith("/api/show"):  # Ollama's, about the model: no question
            return Reply(404, {"error": "unknown"})
        with self._lock:
            self.asked.append(asked)
            self.paths.append(path)
            number = len(self.asked)
        return translated(path, self._way(number, asked))


def translated(path: str, reply: Reply) -> Reply:
    """An OpenAI completion as the API of this path gives it; what is not a completion stays."""
    if reply.status != 200 or not isinstance(reply.body, dict) or not reply.body.get("choices"):
        return reply
    text: str = reply.body["choices"][0]["message"]["content"]
    return Reply(200, _other_forms(path, text) or reply.body, reply.headers)


def _other_forms(path: str, text: str) -> dict[str, Any] | None:
    counts = {"prompt_eval_count": 100, "eval_count": 20, "done": True, "done_reason": "stop"}
    made = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    if path.endswith("/api/generate"):
        return {**made, **counts, "response": text}
    if path.endswith("/api/chat"):
        return {**made, **counts, "message": {"role": "assistant", "content": text}}
    if path.endswith("/converse"):
        return {
            "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120},
            "metrics": {"latencyMs": 1},
        }
    if path.endswith("/messages"):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }
    return None


SCHEMA = object_schema({"score": {"type": "number"}})
QUESTIONS = 6
MODEL = "openai/test-judge"


def prompt(at: int) -> Prompt:
    return Prompt(name="q", system="s", user="u", schema=SCHEMA, digest=f"d{at}", read=read_object)


def test_the_library_is_no_work_for_the_garbage_collector() -> None:
    gc.unfreeze()  # the collected tests, which are frozen too
    litellm._imported()

    assert gc.isenabled()
    assert gc.get_freeze_count() > 100_000


class Judge:
    """The pool over litellm, with a budget that grants all and pauses that cost no time."""

    def __init__(self, folder: Path, provider: LiteLlmJudge, judge: JudgeConfig) -> None:
        self.pauses: list[float] = []
        self.provider = provider
        self._gate = BudgetGate(self._grant)
        self._cache = AnswerCache(folder, 1 << 20)
        self._pool = JudgeClientPool(
            provider=provider,
            gate=self._gate,
            cache=self._cache,
            judge=judge,
            sleep=self._pause,
            chance=lambda: 0.0,
        )

    def _grant(self, frame: FromJudge) -> None:
        if isinstance(frame, ReserveBudget):
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: self._gate.reply(frame.id, granted=True))

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0.01)

    async def ask(self, numbers: Sequence[int]) -> list[str]:
        """The answers to these questions, asked at once; an error as it is published."""

        async def one(at: int) -> str:
            try:
                return (await self._pool.for_subject(str(at), at)(prompt(at), model=None)).text
            except JudgeError as error:
                return f"{error.type}: {error.message}"

        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(one(at)) for at in numbers]
            return [each.result() for each in asked]
        finally:
            self._cache.close()


def provider_of(server: ProviderServer, base: str = "/v1") -> LiteLlmJudge:
    url = f"{server.url}{base}"
    return LiteLlmJudge(timeout=100.0, temperature=0.0, base_url=url, api_key="none")


def judge_of(folder: Path, server: ProviderServer) -> Judge:
    return Judge(folder, provider_of(server), JudgeConfig(model=MODEL))


async def asked(folder: Path, way: Way, count: int = QUESTIONS) -> tuple[list[str], ProviderServer]:
    with ProviderServer(way) as server:
        return await judge_of(folder, server).ask(range(count)), server


@pytest.mark.parametrize("name", ALL)
async def test_every_verdict_arrives(tmp_path: Path, name: str) -> None:
    answers, _ = await asked(tmp_path, ALL[name])
    assert [read_object(each) for each in answers] == [{"score": 0.8}] * QUESTIONS


@pytest.mark.parametrize("name", [name for name in ALL if "every second" in name])
async def test_one_question_alone_gets_its_verdict(tmp_path: Path, name: str) -> None:
    """No other answer shows that the provider only stumbles."""
    answers, _ = await asked(tmp_path, ALL[name], count=1)
    assert [read_object(each) for each in answers] == [{"score": 0.8}]


@pytest.mark.parametrize("name", NONE)
async def test_what_cannot_be_answered_says_why_in_words(tmp_path: Path, name: str) -> None:
    way, word = NONE[name]
    answers, _ = await asked(tmp_path, way)
    kind = word if word == "rate_limited" else "provider_error"
    assert {each.partition(" (")[0] for each in answers} == {f"{kind}: {WORDS[word]}"}


@pytest.mark.parametrize(
    ("way", "requests"),
    [
        (NONE["401"][0], 1),
        (NONE["no quota"][0], 1),
        (NONE["404"][0], 1),
        (NONE["503 for good"][0], 4),
        (NONE["400 whatever is sent"][0], 5),
    ],
)
async def test_how_often_it_is_asked_in_vain(tmp_path: Path, way: Way, requests: int) -> None:
    """Three attempts, the last one also without the schema; what is malformed, with less and less of ours."""
    _, server = await asked(tmp_path, way, count=1)
    assert len(server.asked) == requests


async def test_what_a_model_refuses_is_asked_of_it_once(tmp_path: Path) -> None:
    with ProviderServer(ALL["neither temperature nor max_tokens"]) as server:
        provider = provider_of(server)
        for at in range(3):
            await provider.ask(prompt(at), model=MODEL)
        assert len(server.asked) == 3 + 2
        assert provider.learned(MODEL) == [
            "without temperature",
            "with max_completion_tokens",
        ]
        assert provider.learned("openai/another") == []


@pytest.mark.parametrize(
    "then", [refusal(429, "slow"), refusal(400, "filtered", code="content_filter")]
)
async def test_another_refusal_of_the_second_try_settles_nothing(then: Reply) -> None:
    """Whatever it was refused for, the model has not answered without a schema."""
    way = where(has_schema, refusal(400, "response_format is not supported"), first(2, then))
    with ProviderServer(way) as server:
        provider = provider_of(server)
        with pytest.raises(JudgeError):
            await provider.ask(prompt(1), model=MODEL)
        assert provider.learned(MODEL) == []
        await provider.ask(prompt(2), model=MODEL)
        assert provider.learned(MODEL) == ["without a JSON schema"]


async def test_a_server_that_stumbles_keeps_its_schema(tmp_path: Path) -> None:
    """A failure says nothing of the schema while answers to one come."""
    with ProviderServer(every_second(refusal(500, "internal"))) as server:
        judge = judge_of(tmp_path, server)
        await judge.ask(range(12))
        assert judge.provider.learned(MODEL) == []


async def test_an_outage_at_the_start_teaches_nothing(tmp_path: Path) -> None:
    """All fail with a schema and without one: what answers first afterwards is not proof."""
    with ProviderServer(first(23, refusal(500, "internal"))) as server:
        judge = judge_of(tmp_path, server)
        await judge.ask(range(6))
        assert judge.provider.learned(MODEL) == []


async def test_settings_of_null_are_not_sent() -> None:
    with ProviderServer(good) as server:
        provider = LiteLlmJudge(
            timeout=100.0,
            temperature=None,
            max_tokens=None,
            base_url=f"{server.url}/v1",
            api_key="none",
        )
        await provider.ask(prompt(1), model=MODEL)
    assert not {"temperature", "max_tokens", "max_completion_tokens"} & server.asked[0].keys()


async def test_no_key_is_no_failure_of_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with ProviderServer(good) as server:
        provider = LiteLlmJudge(timeout=100.0, temperature=0.0, base_url=f"{server.url}/v1")
        with pytest.raises(JudgeError) as caught:
            await provider.ask(prompt(1), model=MODEL)
    assert caught.value.message == WORDS["no_api_key"]
    assert not server.asked


SPELLINGS = [
    ("openai/my-model", "/v1", "/v1/chat/completions"),
    ("hosted_vllm/Qwen/Qwen3-8B", "/v1", "/v1/chat/completions"),
    ("azure/my-deployment", "", "/openai/deployments/my-deployment/chat/completions"),
    ("ollama_chat/llama3.1", "", "/api/chat"),
    ("ollama/llama3.1", "", "/api/generate"),
    ("openai/llama3.1", "/v1", "/v1/chat/completions"),
    ("anthropic/claude-sonnet-4-5", "", "/v1/messages"),
    ("bedrock/meta.llama3-1-70b-instruct-v1:0", "", "/converse"),
]
"""As docs/judges.md has them: model, path of the base URL, path that is asked."""


@pytest.mark.filterwarnings("ignore:.*ReadOnly:UserWarning")  # of litellm's reader of Ollama
@pytest.mark.parametrize(("model", "base", "path"), SPELLINGS)
async def test_spellings_of_models_and_their_base_urls_and_each_provider_s_faults_are_read_alike(
    model: str, base: str, path: str
) -> None:
    """Status, code and the pause asked for, in whatever error the library puts them."""
    with ProviderServer(good) as server:
        answer = await provider_of(server, base).ask(prompt(1), model=model)
    assert read_object(answer.text) == {"score": 0.8}
    assert path in server.paths[0]

    for bad, passing in (
        (refusal(503, "busy", retry_after="7"), True),
        (refusal(429, "quota", code="insufficient_quota"), False),
        (refusal(401, "wrong key"), False),
    ):
        with ProviderServer(always(bad)) as server, pytest.raises(JudgeError) as caught:
            await provider_of(server, base).ask(prompt(1), model=model, is_last=False)
        assert caught.value.passing == passing, caught.value
        assert str(bad.status) in caught.value.message
        assert caught.value.retry_after == (7.0 if bad.status == 503 else None)
