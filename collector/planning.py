"""From configuration to what is due: the same in the main process, in every worker and offline."""

from __future__ import annotations

from collections.abc import Collection

from evaluators.dialects.read import Keys
from evaluators.providers.port import Embedder
from evaluators.registry import Registry
from evaluators.run import Configured, Plan, Settings, make_plan

from collector.config import Config
from collector.errors import ConfigError
from evaluators.model import Failure, Outcome


def read_keys(config: Config) -> Keys:
    """The attribute keys that the user wants looked at first."""
    keys = config.attributes
    return Keys(session=keys.session, task=keys.task, user=keys.user)


def plan(
    config: Config, *, registry: Registry | None = None, only: Collection[str] | None = None
) -> Plan:
    """What is due for every trace and session.

    Raises:
        ConfigError: an evaluator, an option or a resource that is not there, named by its key.
    """
    settings = {
        name: Settings(enabled=each.enabled, threshold=each.threshold, options=each.options)
        for name, each in config.evaluators.items()
    }
    try:
        return make_plan(
            registry or Registry.discover(),
            settings,
            embedder=embedder_model(config),
            only=only,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def embedder_model(config: Config) -> str | None:
    """The name that goes into the options digest of embedding evaluators; None without an embedder."""
    if config.embedder.kind == "none":
        return None
    return config.embedder.model or config.embedder.kind


def embedder(config: Config) -> Embedder | None:
    """The local embedder, loaded. Only workers call this: it imports numpy and the model."""
    if config.embedder.kind != "wordllama":
        return None
    from evaluators.providers.wordllama import WordLlamaEmbedder  # noqa: PLC0415 - workers only

    return WordLlamaEmbedder()


def failed(
    plan: Plan, kind: str, message: str, only: Collection[str] | None = None
) -> tuple[Outcome, ...]:
    """Every due trace evaluator's outcome when none of them could be run."""
    due = [each for each in plan.trace if only is None or each.spec.name in only]
    return tuple(_failed(each, Failure(type=kind, message=message)) for each in due)


def _failed(configured: Configured, failure: Failure) -> Outcome:
    return Outcome(
        evaluator=configured.spec.name,
        version=configured.spec.version,
        method=configured.spec.method,
        state="failed",
        threshold=configured.threshold,
        final=configured.final,
        error=failure,
        options_digest=configured.options_digest,
    )
