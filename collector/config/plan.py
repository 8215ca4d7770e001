"""From the configuration to the evaluators that are due: the same in the main process, in workers and offline."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from collector.base.errors import ConfigError
from collector.base.files import read_regular
from collector.config.strict_yaml import parse, unique
from evaluators.dialects.content.sessions import Keys
from evaluators.errors import ExpectationError, PluginNotFound, SettingsError
from evaluators.expectations import Expectations
from evaluators.formulas.signals import SIGNALS
from evaluators.judging.rubric_judge import rubric_judge, with_rubric_judges
from evaluators.model import Failure, Outcome, Scope
from evaluators.plan import Plan, Settings, make_plan
from evaluators.providers.wordllama import MODEL, WordLlamaEmbedder
from evaluators.registry import Registry, installed_points, package_of
from evaluators.resources import Embedder
from evaluators.run import failed

if TYPE_CHECKING:  # a worker has no use for them: see `PlanSettings`
    from collector.config.declaring import ThirdParties
    from collector.config.tree import Config, EvaluatorConfig

_log = logging.getLogger(__name__)
MAX_EXPECTATIONS = 64 << 20
"""Bytes of an expectations file."""


class PlanSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What of the configuration decides which evaluators run.

    Workers get this, not the configuration: pydantic, which checks that, takes 10 MB of each and a third of its start.
    """

    evaluators: dict[str, Settings]
    judges: tuple[tuple[str, str, Scope, float | None, str | None], ...]
    """Of the configuration, each as `rubric_judge` takes it."""
    plugins: tuple[str, ...]
    """Files and modules of third parties' evaluators that can be imported."""
    installed: tuple[str, ...]
    """Entry points of such packages."""
    embedder: str | None
    """The name of its model, which goes into the options digest of embedding evaluators; None: there is none."""
    is_hosted: bool
    """Whether vectors are asked for, not made by workers."""
    judge: str | None
    """A model, if judges are on."""
    expectations: str | None
    """The file."""


def plan_settings(config: Config) -> PlanSettings:
    """Raises SettingsError: one of a third party's evaluator does not fit."""
    embedder = config.embedder
    chosen, found = _chosen(config)
    models = {"wordllama": MODEL, "litellm": embedder.model, "none": None}
    return PlanSettings(
        evaluators=found.given(chosen),
        judges=tuple(
            (name, each.rubric, each.scope, each.threshold, each.version)
            for name, each in config.judges.items()
        ),
        plugins=found.plugins,
        installed=found.installed,
        embedder=models[embedder.kind],
        is_hosted=embedder.kind == "litellm",
        judge=config.judge.model,
        expectations=None if config.expectations is None else str(config.expectations),
    )


def part_of(settings: PlanSettings, package: str = "") -> PlanSettings:
    """What concerns the evaluators of one third party; without its name, those of ours."""
    return msgspec.structs.replace(
        settings,
        evaluators={
            name: each
            for name, each in settings.evaluators.items()
            if name.rpartition("/")[0] == package
        },
        plugins=tuple(each for each in settings.plugins if package_of(each) == package),
        installed=tuple(each for each in settings.installed if each == package),
    )


def keys_from(config: Config) -> Keys:
    keys = config.attributes
    return Keys(session=keys.session, task=keys.task, user=keys.user, filter=keys.filter)


def registry_from(config: Config, *, strict: bool = True) -> Registry:
    """Every evaluator there is: ours, installed packages', those of `plugins`, which are not imported here.

    Not `strict`: one line in the log for a third party that cannot be imported, and all the others. Raises PluginError:
    a third party cannot be imported; where not `strict`, its file is not there. Raises DuplicateEvaluatorError: two
    declare the same name and method.
    """
    _, found = _chosen(config)
    registry = Registry.discover(())
    for spec in found.specs:
        registry.add(spec)
    for error in found.broken.values():
        if strict or isinstance(error, PluginNotFound):
            raise error
        _log.error("%s; its evaluators are left out", error)
    registry.broken = found.broken
    return registry


def plan_from(
    config: Config, *, registry: Registry | None = None, only: Collection[str] | None = None
) -> Plan:
    """The evaluators that are due for every trace and session.

    Raises ConfigError: an evaluator, an option or a resource that is not there, named by its key; an expectations file
    that cannot be read.
    """
    try:
        settings = plan_settings(config)
        # So that a mistake in the file is an error of the start, not of every worker.
        expectations_from(settings)
        every = _with_own_judges(settings, registry or registry_from(config, strict=False))
        _check_tasks(config, every)
        _check_weights(config)
        return _made(settings, every, only)
    except SettingsError as error:
        raise ConfigError(str(error)) from error


def checked_plan(settings: PlanSettings, only: Collection[str] | None = None) -> Plan:
    """The same where evaluators run: it imports those of third parties."""
    points = [each for each in installed_points() if each.name in settings.installed]
    registry = Registry.discover(points, plugins=settings.plugins)
    return _made(settings, _with_own_judges(settings, registry), only)


def _with_own_judges(settings: PlanSettings, registry: Registry) -> Registry:
    """Without a judge model they are off, but still checked."""
    return with_rubric_judges(registry, [rubric_judge(*each) for each in settings.judges])


def _made(settings: PlanSettings, every: Registry, only: Collection[str] | None = None) -> Plan:
    return make_plan(
        every,
        settings.evaluators,
        embedder=settings.embedder,
        hosted=settings.is_hosted,
        judge=settings.judge or False,
        expectations=settings.expectations is not None,
        only=only,
    )


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


def embedder_from(settings: PlanSettings) -> Embedder | None:
    """The local embedder, if one is configured. It loads numpy and its model at the first text: only workers use it."""
    return WordLlamaEmbedder() if settings.embedder == MODEL and not settings.is_hosted else None


def expectations_from(settings: PlanSettings) -> Expectations:
    """The entries of the expectations file; none without one.

    Raises ConfigError: it cannot be read, or an entry is not what it should be.
    """
    if settings.expectations is None:
        return Expectations(())
    path = Path(settings.expectations)
    try:
        return Expectations(_entries(path))
    except ExpectationError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(
            f"expectations: {path} cannot be read: {reason or (str(error).splitlines() or [type(error).__name__])[0]}"
        ) from error


def _entry(number: int, line: str) -> Any:
    try:
        return json.loads(line, object_pairs_hook=unique)
    except ValueError as error:
        reason = getattr(error, "msg", error)  # without the place, which is in this line alone
        raise ValueError(f"line {number}: {reason}") from error


def _entries(path: Path) -> list[Any]:
    text = read_regular(path, most=MAX_EXPECTATIONS).decode("utf-8-sig")
    if path.suffix in {".jsonl", ".ndjson"}:
        return [_entry(*each) for each in enumerate(text.splitlines(), 1) if each[1].strip()]
    entries: Any = parse(text)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ValueError("expected a list of entries")
    return entries  # pyright: ignore[reportUnknownVariableType] - read entry by entry


def failed_outcomes(plan: Plan, kind: str, message: str) -> tuple[Outcome, ...]:
    return tuple(failed(each, Failure(type=kind, message=message)) for each in plan.trace)


def _chosen(config: Config) -> tuple[dict[str, Settings], ThirdParties]:
    from collector.config.declaring import third_parties  # noqa: PLC0415 - with asyncio, 3 MB

    chosen = {name: _settings(each) for name, each in config.evaluators.items()}
    return chosen, third_parties(config.plugins, chosen)


def _settings(chosen: EvaluatorConfig) -> Settings:
    options = chosen.options
    model = options.pop("model", None)
    return Settings(
        enabled=chosen.enabled,
        threshold=chosen.threshold,
        options=options,
        model=model,
        timeout=chosen.timeout,
    )
