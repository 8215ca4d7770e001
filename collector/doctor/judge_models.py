"""One tiny question to each configured model, so that a wrong key is found before the first trace."""

from __future__ import annotations

from collections.abc import Awaitable

from collector.config.tree import Config
from evaluators.judging.client import JudgeError, Prompt, digest_of
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge

_SYSTEM, _USER = "Answer with one word.", "Say ok."
QUESTION = Prompt(
    name="trial",
    system=_SYSTEM,
    user=_USER,
    schema=None,
    digest=digest_of("trial", _SYSTEM, _USER, None),
)


async def models_refuse(config: Config) -> list[str]:
    """One line per model that does not answer; what a line says is never the provider's own text."""
    judge, embedder = config.judge, config.embedder
    wrong: list[str] = []
    if judge.model is not None:
        wrong += await _refusal("judge", judge.model, judge.base_url, _ask(config, judge.model))
    if embedder.kind == "litellm" and embedder.model is not None:
        asked = _embed(config, embedder.model)
        wrong += await _refusal("embedder", embedder.model, embedder.base_url, asked)
    return wrong


async def _refusal(
    section: str, model: str, base_url: str | None, asked: Awaitable[object]
) -> list[str]:
    try:
        await asked
    except JudgeError as error:
        where = f" at {base_url}" if base_url else ""
        keys = f"{section}.base_url and {section}.api_key"
        why = f"{error.type}: {error.message}"
        return [f"{section}.model: `{model}`{where} does not answer ({why}); check it, {keys}"]
    return []


async def _ask(config: Config, model: str) -> object:
    judge = config.judge
    provider = LiteLlmJudge(
        timeout=judge.timeout,
        temperature=judge.temperature,
        base_url=judge.base_url,
        api_key=None if judge.api_key is None else judge.api_key.get_secret_value(),
    )
    return await provider.ask(QUESTION, model=model)


async def _embed(config: Config, model: str) -> object:
    embedder = config.embedder
    key = embedder.api_key
    provider = LiteLlmEmbedder(
        model,
        timeout=config.judge.timeout,
        base_url=embedder.base_url,
        api_key=None if key is None else key.get_secret_value(),
    )
    return await provider.embed(["ok"])
