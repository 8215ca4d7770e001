"""From the configuration to the evaluators that are due: the same in the main process, in workers and offline."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from collector.base.errors import ConfigError
from collector.base.regular_file import read_regular
from collector.config.strict_yaml import parse, unique
from collector.config.tree import Config, EvaluatorConfig
from evaluators.declare import Spec
from evaluators.dialects.content.sessions import Keys
from evaluators.errors import ExpectationError, SettingsError
from evaluators.expectations import Expectations
from evaluators.formulas.signals import SIGNALS
from evaluators.judging.rubric_judge import rubric_judge, with_rubric_judges
from evaluators.model import Failure, Outcome
from evaluators.plan import Plan, Settings, make_plan
from evaluators.providers.wordllama import MODEL, WordLlamaEmbedder
from evaluators.registry import Registry
from evaluators.resources import Embedder
from evaluators.run import failed

MAX_EXPECTATIONS = 64 << 20
"""Bytes of an expectations file."""


def keys_from(config: Config) -> Keys:
    """The attribute keys of the user, which are read before all others."""
    keys = config.attributes
    return Keys(session=keys.session, task=keys.task, user=keys.user, filter=keys.filter)


def registry_from(config: Config) -> Registry:
    """Every evaluator there is: ours, installed packages', those of `plugins`."""
    return Registry.discover(plugins=config.plugins)


def plan_from(
    config: Config, *, registry: Registry | None = None, only: Collection[str] | None = None
) -> Plan:
    """The evaluators that are due for every trace and session.

    Raises:
        ConfigError: an evaluator, an option or a resource that is not there, named by its key; an expectations
            file that cannot be read.
    """
    expectations_from(
        config
    )  # so that a mistake in the file is an error of the start, not of every worker
    try:
        every = with_rubric_judges(registry or registry_from(config), _own_judges(config))
        _check_tasks(config, every)
        _check_weights(config)
        return make_plan(
            every,
            {name: _settings(each) for name, each in config.evaluators.items()},
            embedder=embedder_model(config),
            hosted=config.embedder.kind == "litellm",
            judge=config.judge.model or False,
            expectations=config.expectations is not None,
            only=only,
        )
    except SettingsError as error:
        raise ConfigError(str(error)) from error


def _check_tasks(config: Config, every: Registry) -> None:
    """An evaluator that is off is not an error: task success then comes from span attributes alone."""
    name = config.tasks.evaluator
    scopes = {each.scope for each in every.named(name)}
    if "session" in scopes:
        return
    known = sorted({each.name for each in every if each.scope == "session"})
    what = f"`{name}` scores traces" if scopes else f"there is no evaluator `{name}`"
    raise ConfigError(f"tasks.evaluator: {what}; name one that scores sessions: {', '.join(known)}")


def _check_weights(config: Config) -> None:
    """The formulas themselves take any name, as their document says; in a configuration an unknown one is a mistake."""
    for name, each in config.evaluators.items():
        weights: Any = each.options.get("signal_weights")
        given = cast("dict[str, Any]", weights) if isinstance(weights, dict) else {}
        unknown = sorted(set(given) - set(SIGNALS))
        if unknown:
            raise ConfigError(
                f"evaluators.{name}.signal_weights: no signal `{unknown[0]}`; it weighs {', '.join(SIGNALS)}"
            )


def embedder_model(config: Config) -> str | None:
    """The name that goes into the options digest of embedding evaluators; None without an embedder."""
    embedder = config.embedder
    return {"wordllama": MODEL, "litellm": embedder.model, "none": None}[embedder.kind]


def embedder_from(config: Config) -> Embedder | None:
    """The local embedder, if one is configured. It loads numpy and its model at the first text: only workers use it."""
    return WordLlamaEmbedder() if config.embedder.kind == "wordllama" else None


def _own_judges(config: Config) -> list[Spec]:
    """The judges of the configuration. Without a judge model they are off, but still checked."""
    return [
        rubric_judge(name, each.rubric, each.scope, each.threshold, each.version)
        for name, each in config.judges.items()
    ]


def expectations_from(config: Config) -> Expectations:
    """The entries of the expectations file; none without one.

    Raises:
        ConfigError: it cannot be read, or an entry is not what it should be.
    """
    path = config.expectations
    if path is None:
        return Expectations(())
    try:
        return Expectations(_entries(path))
    except ExpectationError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(
            f"expectations: {path} cannot be read: {reason or _first_line(error)}"
        ) from error


def _entries(path: Path) -> list[Any]:
    text = read_regular(path, most=MAX_EXPECTATIONS).decode("utf-8-sig")
    if path.suffix in {".jsonl", ".ndjson"}:
        lines = [line for line in text.splitlines() if line.strip()]
        return [json.loads(line, object_pairs_hook=unique) for line in lines]
    entries: Any = parse(text)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ValueError("expected a list of entries")
    return entries  # pyright: ignore[reportUnknownVariableType] - read entry by entry


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def failed_outcomes(plan: Plan, kind: str, message: str) -> tuple[Outcome, ...]:
    """Every due trace evaluator's outcome when none of them could be run."""
    return tuple(failed(each, Failure(type=kind, message=message)) for each in plan.trace)


def _settings(chosen: EvaluatorConfig) -> Settings:
    options = chosen.options
    model = options.pop("model", None)
    return Settings(
        enabled=chosen.enabled, threshold=chosen.threshold, options=options, model=model
    )
