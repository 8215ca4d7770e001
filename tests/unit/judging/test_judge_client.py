import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
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
from evaluators.judging.embedding import Embedded
from evaluators.judging.judge import judge_trace
from evaluators.judging.prompt import Answer, JudgeError, Prompt
from evaluators.judging.rubric_judge import rubric_judge
from evaluators.plan import Configured
from tests.support.evaluating import a_trace, a_turn

PROMPT = Prompt(name="p", system="s", user="u", schema=None, digest="d")


class FakeProvider:
    """Fails with the given types in turn, then answers."""

    def __init__(self, *failures: str, text: str = "yes", **error: Any) -> None:
        self.failures = list(failures)
        self.error = error
        self.last: list[bool] = []
        self.text = text

    @property
    def asked(self) -> int:
        return len(self.last)

    def ceiling(self, prompt: Prompt, model: str) -> float:
        return 0.25

    async def ask(self, prompt: Prompt, *, model: str, is_last: bool) -> Answer:
        self.last.append(is_last)
        if self.failures and prompt.name != "other":
            raise JudgeError(type=self.failures.pop(0), message="no", **self.error)
        return Answer(text=self.text, model=model, input_tokens=1, output_tokens=1, cost_usd=0.1)


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


class Stand:
    """An asker whose main process grants all, or nothing."""

    def __init__(self, cache: AnswerCache) -> None:
        self.provider = FakeProvider()
        self.vectors = FakeVectors()
        self.sent: list[FromJudge] = []
        self.pauses: list[float] = []
        self.grants = True
        self.gate = BudgetGate(self._send)
        self.chance = 0.0
        self.clients = JudgeClientPool(
            provider=self.provider,
            gate=self.gate,
            cache=cache,
            judge=JudgeConfig(model="m", attempts=3),
            vectors=self.vectors,
            sleep=self._pause,
            chance=lambda: self.chance,
        )

    async def ask(self, prompt: Prompt = PROMPT, *, of: str = "me") -> Answer:
        return await self.clients.for_subject(of, 7)(prompt, model=None)

    async def embed(self, *texts: str, of: str = "me") -> Embedded:
        return await self.clients.for_subject(of, 7).embed(texts)

    def _send(self, frame: FromJudge) -> None:
        self.sent.append(frame)
        if isinstance(frame, ReserveBudget):
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: self.gate.reply(frame.id, granted=self.grants))

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def finished(self) -> list[CallFinished]:
        return [each for each in self.sent if isinstance(each, CallFinished)]

    @property
    def results(self) -> list[str]:
        return [each.result for each in self.finished]


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    with closing(AnswerCache(tmp_path, 1 << 20)) as cache:
        yield Stand(cache)


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
async def test_a_question_is_asked_again_where_that_may_help(stand: Stand, asked: Asked) -> None:
    provider = stand.provider
    provider.failures, provider.error = [*asked.fails], {**asked.more}
    stand.grants, stand.chance = asked.grants, asked.chance

    try:
        answer = await stand.ask()
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
    stand: Stand, kind: str, most: int
) -> None:
    """A timeout may be the prompt's own, and costs a place for long."""
    stand.provider.failures, stand.provider.error = [kind] * 99, {"passing": True}
    other = replace(PROMPT, name="other", digest="e")

    async def answer_another(_: float) -> None:
        stand.pauses.append(0.0)
        if len(stand.pauses) == 1:
            await stand.ask(other, of="another")

    stand.clients.sleep = answer_another
    with pytest.raises(JudgeError):
        await stand.ask()
    assert stand.provider.asked == most + 1


@pytest.mark.parametrize("owner", ["me", "another"])
async def test_an_answer_that_cannot_be_read_is_paid_for_and_never_kept(
    stand: Stand, owner: str
) -> None:
    """Else every later run would fail of an answer that a model gave once."""
    stand.provider.text = "rubbish"
    prompt = replace(PROMPT, read=json.loads)
    await stand.ask(prompt)
    stand.clients.written("me")
    stand.provider.text = "1"

    again = await stand.ask(prompt, of=owner)

    assert (again.text, again.cached, stand.provider.asked) == ("1", False, 2)
    assert [(each.result, each.usd) for each in stand.finished] == [
        ("parse_error", 0.1),
        ("ok", 0.1),
    ]


async def test_an_answer_that_is_billed_and_cannot_be_used_counts_as_spent(stand: Stand) -> None:
    stand.provider.failures, stand.provider.error = ["provider_error"], {"billed": True}
    with pytest.raises(JudgeError):
        await stand.ask()
    assert [each.keep_reservation for each in stand.finished] == [True]


async def test_a_kept_answer_that_cannot_be_read_is_asked_for_again(stand: Stand) -> None:
    """An older version kept it."""
    stand.provider.text = "rubbish"
    await stand.ask()
    stand.clients.written("me")
    stand.provider.text = "1"

    again = await stand.ask(replace(PROMPT, read=json.loads))

    assert (again.text, stand.provider.asked) == ("1", 2)


async def test_no_vectors_beyond_the_budget(stand: Stand) -> None:
    stand.grants = False
    with pytest.raises(JudgeError) as caught:
        await stand.embed("a")
    assert caught.value.type == "budget"
    assert not stand.vectors.asked


async def test_an_answer_is_paid_once(stand: Stand) -> None:
    first, after_a_crash = await stand.ask(), await stand.ask()
    another = await stand.ask(of="another")
    assert stand.provider.asked == 1
    assert (first.cost_usd, after_a_crash.cost_usd, another.cost_usd) == (0.1, 0.1, 0.0)
    assert (first.cached, after_a_crash.cached, another.cached) == (False, False, True)

    stand.clients.written("me")
    assert (await stand.ask()).cached


async def test_an_answer_that_is_scored_is_no_parse_error_and_is_cached(stand: Stand) -> None:
    """A rubric judge that is asked alone may answer without its key, in prose."""
    stand.provider.text = "Score: 0.75"
    rubric = rubric_judge("tone", "Is the tone kind?", "trace", 0.5)
    due = (Configured(spec=rubric, options={}, threshold=0.5, options_digest=""),)
    for owner in ("me", "you"):
        ask = stand.clients.for_subject(owner, 7)
        verdict = await judge_trace(due, a_trace(), ask, calls="shared", max_prompt=24_000)
        assert [each.score for each in verdict.outcomes] == [0.75]
        stand.clients.written(owner)

    assert stand.results == ["ok"]
    assert stand.provider.asked == 1


async def test_a_text_is_embedded_once_and_its_vector_stays_the_same(stand: Stand) -> None:
    first, after_a_crash = await stand.embed("a", "bb"), await stand.embed("a", "bb")
    stand.clients.written("me")
    second = await stand.embed("ccc", "bb", of="you")
    third = await stand.embed("bb", "a", of="they")

    assert stand.vectors.asked == [("a", "bb"), ("ccc",)]
    assert [list(each) for each in second.vectors] == [[1.0], list(first.vectors[1])]
    for found, tokens, usd, is_cached in (
        (first, 6, 0.2, False),
        (after_a_crash, 6, 0.2, False),
        (second, 3, 0.1, False),
        (third, 0, 0, True),
    ):
        assert (found.input_tokens, found.cached) == (tokens, is_cached)
        assert found.cost_usd == pytest.approx(usd)
    assert stand.results == ["ok", "ok"]


async def test_a_session_evaluator_that_asks_a_judge_sees_the_turns(stand: Stand) -> None:
    async def turns_seen(session: Session, *, judge: Judge) -> Score:
        await asyncio.sleep(0)
        return Score(value=1.0, metadata={"turns": [each.trace_id for each in session.turns]})

    spec = declared(evaluator(version="1")(turns_seen))
    assert spec is not None
    spec = replace(spec, method="custom")
    due = Configured(spec=spec, options={}, threshold=None, options_digest="")
    config = Config()
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

    done = await JudgeJobRunner(config, stand.clients, [due], plan_settings(config)).run(job)

    assert [each.metadata for each in done.outcomes] == [{"turns": ["t-1", "t-2"]}]
