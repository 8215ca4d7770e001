from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.config.plan import plan_settings
from collector.config.tree import Config, JudgeConfig
from collector.judging.answer_cache import AnswerCache
from collector.judging.child import JudgeJobRunner
from collector.judging.judge_client import BudgetGate, JudgeClientPool
from collector.judging.port import CallFinished, FromJudge, ReserveBudget, SessionJob
from evaluators import Judge, Score, Session, evaluator
from evaluators.declare import declared
from evaluators.judging.answers import read_object
from evaluators.judging.embedding import Embedded
from evaluators.judging.judge import judge_trace
from evaluators.judging.prompt import Answer, JudgeError, Prompt
from evaluators.judging.rubric_judge import rubric_judge
from evaluators.plan import Configured
from tests.support.evaluating import a_trace, a_turn

PROMPT = Prompt(name="p", system="s", user="u", schema=None, digest="d")


class FakeProvider:
    """Fails with the given types in turn, then answers."""

    def __init__(
        self,
        *failures: str,
        retry_after: float | None = None,
        text: str = "yes",
        passing: bool | None = None,
    ) -> None:
        self.failures = list(failures)
        self.passing = passing
        self.last: list[bool] = []
        self.retry_after = retry_after
        self.asked = 0
        self.text = text

    def ceiling(self, prompt: Prompt, model: str) -> float:
        return 0.25

    async def ask(self, prompt: Prompt, *, model: str, is_last: bool) -> Answer:
        self.asked += 1
        self.last.append(is_last)
        if self.failures and prompt.name != "other":
            kind = self.failures.pop(0)
            raise JudgeError(
                type=kind, message="no", retry_after=self.retry_after, passing=self.passing
            )
        return Answer(text=self.text, model=model, input_tokens=1, output_tokens=1, cost_usd=0.1)


OPENED: list[AnswerCache] = []
"""The caches of a test's stands."""


@pytest.fixture(autouse=True)
def every_cache_is_closed() -> Iterator[None]:
    """From Python 3.13 on a connection of SQLite that is left open warns."""
    yield
    while OPENED:
        OPENED.pop().close()


class Stand:
    """An asker whose main process grants all, or nothing."""

    def __init__(
        self,
        folder: Path,
        provider: FakeProvider,
        *,
        grants: bool = True,
        vectors: FakeVectors | None = None,
    ) -> None:
        self.sent: list[FromJudge] = []
        self.pauses: list[float] = []
        self.grants = grants
        self.gate = BudgetGate(self._send)
        cache = AnswerCache(folder, 1 << 20)
        OPENED.append(cache)
        self.clients = JudgeClientPool(
            provider=provider,
            gate=self.gate,
            cache=cache,
            judge=JudgeConfig(model="m", attempts=3),
            vectors=vectors,
            sleep=self._pause,
            chance=lambda: self.chance,
        )
        self.chance = 0.0

    def _send(self, frame: FromJudge) -> None:
        self.sent.append(frame)
        if isinstance(frame, ReserveBudget):
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: self.gate.reply(frame.id, granted=self.grants))

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def results(self) -> list[str]:
        return [each.result for each in self.sent if isinstance(each, CallFinished)]


@dataclass(frozen=True)
class Asked:
    """How a provider answers, and what becomes of a question."""

    fails: Sequence[str]
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    results: Sequence[str] = ()
    pauses: Sequence[float] = ()
    chance: float = 0.0
    grants: bool = True
    error: str | None = None


TWICE = ("retry", "retry", "ok")
ASKED: Mapping[str, Asked] = {
    "too many requests pass": Asked(["rate_limited"] * 2, results=TWICE, pauses=[0.5, 1.0]),
    "a timeout passes": Asked(["timeout"] * 2, results=TWICE, pauses=[0.5, 1.0]),
    "attempts end": Asked(
        ["rate_limited"] * 9,
        results=("retry", "retry", "rate_limited"),
        pauses=[0.5, 1.0],
        error="rate_limited",
    ),
    "a failure that may pass": Asked(
        ["provider_error"] * 2, {"passing": True}, results=TWICE, pauses=[0.5, 1.0]
    ),
    "another failure": Asked(
        ["provider_error"], results=["provider_error"], error="provider_error"
    ),
    "no leave": Asked([], grants=False, error="budget"),
    **{
        f"a pause of {wanted} s": Asked(
            ["rate_limited"], {"retry_after": wanted}, results=("retry", "ok"), pauses=[pause]
        )
        for wanted, pause in ((7.0, 7.0), (0.1, 0.5), (3600.0, 120.0))
    },
    "those who wait do not come back at once": Asked(
        ["rate_limited"], {"retry_after": 8.0}, results=("retry", "ok"), pauses=[9.0], chance=0.5
    ),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
async def test_a_question_is_asked_again_where_that_may_help(tmp_path: Path, asked: Asked) -> None:
    provider = FakeProvider(*asked.fails, **asked.more)
    stand = Stand(tmp_path, provider, grants=asked.grants)
    stand.chance = asked.chance

    try:
        answer = await stand.clients.for_subject("me", 7)(PROMPT, model=None)
        found = None if answer.text == "yes" else answer.text
    except JudgeError as error:
        found = error.type

    assert found == asked.error
    assert (stand.results, stand.pauses) == ([*asked.results], [*asked.pauses])
    assert provider.asked == len(asked.results)
    assert provider.last == [False, False, True][: provider.asked]
    assert stand.sent[0] == ReserveBudget(id=0, job=7, usd=0.25)


@pytest.mark.parametrize(("kind", "most"), [("provider_error", 12), ("timeout", 3)])
async def test_a_provider_that_answers_others_is_asked_on_within_bounds(
    tmp_path: Path, kind: str, most: int
) -> None:
    """A timeout may be the prompt's own, and costs a place for long."""
    provider = FakeProvider(*[kind] * 99, passing=True)
    stand = Stand(tmp_path, provider)
    other = replace(PROMPT, name="other", digest="e")

    async def answer_another(_: float) -> None:
        stand.pauses.append(0.0)
        if len(stand.pauses) == 1:
            await stand.clients.for_subject("another", 8)(other, model=None)

    stand.clients.sleep = answer_another
    with pytest.raises(JudgeError):
        await stand.clients.for_subject("me", 7)(PROMPT, model=None)
    assert provider.asked == most + 1


async def test_an_answer_that_is_billed_and_cannot_be_used_counts_as_spent(tmp_path: Path) -> None:
    class Cut(FakeProvider):
        async def ask(self, prompt: Prompt, *, model: str, is_last: bool) -> Answer:
            raise JudgeError(type="provider_error", message="cut", billed=True)

    stand = Stand(tmp_path, Cut())
    with pytest.raises(JudgeError):
        await stand.clients.for_subject("me", 7)(PROMPT, model=None)
    (finished,) = [each for each in stand.sent if isinstance(each, CallFinished)]
    assert finished.keep_reservation


@pytest.mark.parametrize("owner", ["me", "another"])
async def test_an_answer_that_cannot_be_read_is_never_kept(tmp_path: Path, owner: str) -> None:
    """Else every later run would fail of an answer that a model gave once."""
    provider = FakeProvider(text="rubbish")
    stand = Stand(tmp_path, provider)
    prompt = replace(PROMPT, read=json.loads)
    await stand.clients.for_subject("me", 7)(prompt, model=None)
    stand.clients.written("me")
    provider.text = "1"

    again = await stand.clients.for_subject(owner, 8)(prompt, model=None)

    assert (again.text, again.cached, provider.asked) == ("1", False, 2)
    assert stand.results == ["parse_error", "ok"]


async def test_a_kept_answer_that_cannot_be_read_is_asked_for_again(tmp_path: Path) -> None:
    """An older version kept it."""
    provider = FakeProvider(text="rubbish")
    stand = Stand(tmp_path, provider)
    await stand.clients.for_subject("me", 7)(PROMPT, model=None)
    stand.clients.written("me")
    provider.text = "1"

    again = await stand.clients.for_subject("me", 8)(replace(PROMPT, read=json.loads), model=None)

    assert (again.text, provider.asked) == ("1", 2)


async def test_an_answer_is_paid_once(tmp_path: Path) -> None:
    provider = FakeProvider()
    stand = Stand(tmp_path, provider)
    first = await stand.clients.for_subject("me", 7)(PROMPT, model=None)
    after_a_crash = await stand.clients.for_subject("me", 7)(PROMPT, model=None)
    another = await stand.clients.for_subject("another", 7)(PROMPT, model=None)
    assert provider.asked == 1
    assert (first.cost_usd, after_a_crash.cost_usd, another.cost_usd) == (0.1, 0.1, 0.0)
    assert (first.cached, after_a_crash.cached, another.cached) == (False, False, True)

    stand.clients.written("me")
    later = await stand.clients.for_subject("me", 7)(PROMPT, model=None)
    assert later.cached


async def test_an_answer_that_cannot_be_read_is_paid_for_and_counted_as_such(
    tmp_path: Path,
) -> None:
    prompt = replace(PROMPT, read=read_object)
    stand = Stand(tmp_path, FakeProvider())
    answer = await stand.clients.for_subject("me", 7)(prompt, model=None)
    assert answer.text == "yes"
    (finished,) = [each for each in stand.sent if isinstance(each, CallFinished)]
    assert (finished.result, finished.usd) == ("parse_error", 0.1)


async def test_an_answer_that_is_scored_is_no_parse_error_and_is_cached(tmp_path: Path) -> None:
    """A rubric judge that is asked alone may answer without its key, in prose."""
    provider = FakeProvider(text="Score: 0.75")
    stand = Stand(tmp_path, provider)
    rubric = rubric_judge("tone", "Is the tone kind?", "trace", 0.5)
    due = (Configured(spec=rubric, options={}, threshold=0.5, options_digest=""),)
    for owner in ("me", "you"):
        verdict = await judge_trace(
            due,
            a_trace(),
            stand.clients.for_subject(owner, 7),
            calls="shared",
            max_prompt=24_000,
        )
        assert [each.score for each in verdict.outcomes] == [0.75]
        stand.clients.written(owner)

    assert stand.results == ["ok"]
    assert provider.asked == 1


class FakeVectors:
    """Vectors of one number, its text's length."""

    model = "vectors"

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def ceiling(self, texts: Sequence[str]) -> float:
        return 0.25

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.asked.append(tuple(texts))
        vectors = tuple((len(text) / 3,) for text in texts)
        return Embedded(vectors=vectors, input_tokens=3 * len(texts), cost_usd=0.1 * len(texts))


async def test_a_text_is_embedded_once_and_its_vector_stays_the_same(tmp_path: Path) -> None:
    vectors = FakeVectors()
    stand = Stand(tmp_path, FakeProvider(), vectors=vectors)
    first = await stand.clients.for_subject("me", 7).embed(["a", "bb"])
    stand.clients.written("me")
    second = await stand.clients.for_subject("you", 7).embed(["ccc", "bb"])
    third = await stand.clients.for_subject("they", 7).embed(["bb", "a"])

    assert vectors.asked == [("a", "bb"), ("ccc",)]
    assert [list(each) for each in second.vectors] == [[1.0], list(first.vectors[1])]
    assert (first.input_tokens, first.cost_usd, first.cached) == (6, pytest.approx(0.2), False)
    assert (second.input_tokens, second.cost_usd, second.cached) == (3, pytest.approx(0.1), False)
    assert (third.input_tokens, third.cost_usd, third.cached) == (0, 0, True)
    assert stand.results == ["ok", "ok"]


async def test_own_vectors_from_before_a_crash_cost_what_they_cost(tmp_path: Path) -> None:
    vectors = FakeVectors()
    stand = Stand(tmp_path, FakeProvider(), vectors=vectors)
    await stand.clients.for_subject("me", 7).embed(["a"])
    again = await stand.clients.for_subject("me", 7).embed(["a"])
    assert len(vectors.asked) == 1
    assert (again.cost_usd, again.cached) == (pytest.approx(0.1), False)


async def test_no_vectors_beyond_the_budget(tmp_path: Path) -> None:
    vectors = FakeVectors()
    stand = Stand(tmp_path, FakeProvider(), vectors=vectors, grants=False)
    with pytest.raises(JudgeError) as caught:
        await stand.clients.for_subject("me", 7).embed(["a"])
    assert caught.value.type == "budget"
    assert not vectors.asked


async def test_a_session_evaluator_that_asks_a_judge_sees_the_turns(tmp_path: Path) -> None:
    async def turns_seen(session: Session, *, judge: Judge) -> Score:
        await asyncio.sleep(0)
        return Score(value=1.0, metadata={"turns": [each.trace_id for each in session.turns]})

    spec = declared(evaluator(version="1")(turns_seen))
    assert spec is not None
    spec = replace(spec, method="custom")
    due = Configured(spec=spec, options={}, threshold=None, options_digest="")
    config = Config()
    pool = Stand(tmp_path, FakeProvider()).clients
    job = SessionJob(
        id=1,
        owner="o",
        service="bot",
        agent="desk",
        session_id="s-1",
        closed="idle",
        traces=(msgspec.Raw(msgspec.msgpack.encode(a_trace(input="Where?", output="There."))),),
        turns=(a_turn("t-1", 1, {}), a_turn("t-2", 2, {})),
    )

    done = await JudgeJobRunner(config, pool, [due], plan_settings(config)).run(job)

    assert [each.metadata for each in done.outcomes] == [{"turns": ["t-1", "t-2"]}]
