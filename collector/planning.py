"""From configuration to what is due: the same in the main process, in every worker and offline."""

from __future__ import annotations

from collections.abc import Collection

from collector.config import Config, EvaluatorConfig
from collector.errors import ConfigError
from evaluators import outcome
from evaluators.dialects.read import Keys
from evaluators.errors import SettingsError
from evaluators.model import Failure, Outcome
from evaluators.providers.wordllama import MODEL, WordLlamaEmbedder
from evaluators.registry import Registry
from evaluators.resources import Embedder
from evaluators.run import Plan, Settings, make_plan


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
    try:
        return make_plan(
            registry or Registry.discover(),
            {name: _settings(each) for name, each in config.evaluators.items()},
            embedder=embedder_model(config),
            only=only,
        )
    except SettingsError as error:
        raise ConfigError(str(error)) from error


def embedder_model(config: Config) -> str | None:
    """The name that goes into the options digest of embedding evaluators; None without a local embedder."""
    return MODEL if config.embedder.kind == "wordllama" else None


def embedder(config: Config) -> Embedder | None:
    """The local embedder. It imports numpy and its model at the first text: only workers may use it."""
    return WordLlamaEmbedder() if config.embedder.kind == "wordllama" else None


def failed(
    plan: Plan, kind: str, message: str, only: Collection[str] | None = None
) -> tuple[Outcome, ...]:
    """Every due trace evaluator's outcome when none of them could be run."""
    due = [each for each in plan.trace if only is None or each.spec.name in only]
    return tuple(outcome.failed(each, Failure(type=kind, message=message)) for each in due)


def _settings(chosen: EvaluatorConfig) -> Settings:
    options = chosen.options
    model = options.pop("model", None)
    return Settings(
        enabled=chosen.enabled, threshold=chosen.threshold, options=options, model=model
    )
