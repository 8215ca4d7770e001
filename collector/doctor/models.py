"""`spanwise validate --connect`: one small question to each model, asked as the judge asks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from collector.base.retry import Backoff, Sleep
from collector.config.crosscheck import models_asked
from collector.config.tree import Config
from collector.judging.judge_client import FIRST_PAUSE, LONGEST_PAUSE
from evaluators.judging.answer_schema import object_schema
from evaluators.judging.answers import read_object
from evaluators.judging.prompt import JudgeError, Prompt, digest_of
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge

EMBEDDER = "embedder.model"  # the path of the one model that is not a judge
_SYSTEM = 'Answer with one JSON object and nothing else: {"ok": true}.'
_USER = "Does this question reach you?"
_SCHEMA = object_schema({"ok": {"type": "boolean"}})
QUESTION = Prompt(
    name="trial",
    system=_SYSTEM,
    user=_USER,
    schema=_SCHEMA,
    digest=digest_of("trial", _SYSTEM, _USER, _SCHEMA),
    read=read_object,
)
"""It has all that a judge's question has, so that what a model refuses is found before the first trace."""


async def ask_models(
    config: Config, sleep: Sleep = asyncio.sleep
) -> tuple[list[str], tuple[str, ...]]:
    """One line per model that does not answer, without the provider's own text; and the models that do, by setting."""
    wrong: list[str] = []
    right: list[str] = []
    judge = _judge(config)
    for path, model in _distinct(models_asked(config)).items():
        is_embedder = path == EMBEDDER
        try:
            await _with_retries(_question(config, judge, path, model), config, sleep)
        except JudgeError as error:
            where = (config.embedder if is_embedder else config.judge).base_url
            wrong.append(_refusal(path, model, where, error))
        else:
            learned = [] if is_embedder else judge.learned(model)
            right.append(f"{path} (asked {', '.join(learned)})" if learned else path)
    return wrong, tuple(right)


def _distinct(models: Mapping[str, str]) -> dict[str, str]:
    """Each judge's model under the first setting that names it: one question is enough."""
    first: dict[tuple[str, bool], str] = {}
    for path, model in models.items():
        first.setdefault((model, path == EMBEDDER), path)
    return {path: model for (model, _), path in first.items()}


def _question(
    config: Config, judge: LiteLlmJudge, path: str, model: str
) -> Callable[[bool], Awaitable[object]]:
    if path != EMBEDDER:
        return lambda is_last: judge.ask(QUESTION, model=model, is_last=is_last)
    embedder = _embedder(config, model)
    return lambda _: embedder.embed(["ok"])


async def _with_retries(
    ask: Callable[[bool], Awaitable[object]], config: Config, sleep: Sleep
) -> None:
    backoff = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    for attempt in range(1, config.judge.attempts + 1):
        is_last = attempt == config.judge.attempts
        try:
            await ask(is_last)
        except JudgeError as error:
            if is_last or not error.passing:
                raise
            pause = max(backoff.next(), min(error.retry_after or 0.0, LONGEST_PAUSE))
        else:
            return
        await sleep(pause)


def _refusal(path: str, model: str, base_url: str | None, error: JudgeError) -> str:
    where = f" at {base_url}" if base_url else ""
    section = "embedder" if path == EMBEDDER else "judge"
    hint = error.hint.format(section) if error.hint else f"check it, {section}.base_url"
    why = f"{error.type}: {error.message}"
    return f"{path}: `{model}`{where} does not answer ({why}); {hint}"


def _judge(config: Config) -> LiteLlmJudge:
    judge = config.judge
    return LiteLlmJudge(
        timeout=judge.timeout,
        temperature=judge.temperature,
        max_tokens=judge.max_tokens,
        base_url=judge.base_url,
        api_key=None if judge.api_key is None else judge.api_key.get_secret_value(),
    )


def _embedder(config: Config, model: str) -> LiteLlmEmbedder:
    key = config.embedder.api_key
    return LiteLlmEmbedder(
        model,
        timeout=config.judge.timeout,
        base_url=config.embedder.base_url,
        api_key=None if key is None else key.get_secret_value(),
    )
