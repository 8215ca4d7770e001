"""Which evaluators run, with which options: the registry and the configuration made into a plan, or an error."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from evaluators.declare import Need, Spec, is_a
from evaluators.digest import options_digest
from evaluators.errors import SettingsError
from evaluators.formulas.signals import default_signals
from evaluators.model import JSON
from evaluators.registry import Registry
from evaluators.resources import Block, Running

PLUGIN_TIMEOUT = 10.0
"""Seconds for one trace: the slowest of ours takes a hundredth of that on the largest trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of one evaluator."""

    enabled: bool | None = None
    """None: on by default if its needs are met. True: on, or an error. False: off."""
    threshold: float | None = None
    options: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    model: str | None = None
    """A judge model for this evaluator alone."""
    timeout: float | None = None
    """Seconds that a third party's evaluator may take; None: PLUGIN_TIMEOUT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """One evaluator that runs."""

    spec: Spec
    options: Mapping[str, JSON]
    threshold: float | None
    options_digest: str
    model: str | None = None
    """A judge model for this evaluator alone."""
    final: bool = True
    """False: a stand-in until its judged sibling gives the verdict."""
    emit: bool = True
    """False: computed only because another evaluator reads it."""
    timeout: float = PLUGIN_TIMEOUT
    """Seconds that it may take where it is a third party's."""
    is_calibrated: bool = True
    """False: its value has no calibrated scale here; it is measured, and neither passes nor fails."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that runs, in order of name."""

    trace: tuple[Configured, ...] = ()
    session: tuple[Configured, ...] = ()
    judged: tuple[Configured, ...] = ()
    """Evaluators of either scope that wait for a judge or for hosted embeddings."""
    plugins: tuple[Configured, ...] = ()
    """Third parties' evaluators of either scope: they run in processes of their own, their outcomes are verdicts."""
    ranked: tuple[Configured, ...] = ()
    """Session evaluators that rank a session among earlier ones."""

    @cached_property
    def running(self) -> tuple[tuple[Configured, type[Running]], ...]:
        """The session evaluators that keep a state, with its class; each trace asks for them."""
        states = ((each, each.spec.running) for each in self.session)
        return tuple((each, state) for each, state in states if state is not None)

    def __iter__(self) -> Iterator[Configured]:
        return chain(self.trace, self.session, self.judged, self.plugins, self.ranked)


def make_plan(
    registry: Registry,
    settings: Mapping[str, Settings],
    *,
    embedder: str | None,
    hosted: bool = False,
    judge: str | bool = False,
    expectations: bool = False,
    only: Collection[str] | None = None,
) -> Plan:
    """Decide what runs.

    Args:
        registry: Every evaluator there is.
        settings: By evaluator name.
        embedder: Name of the embedder's model; None = there is none.
        hosted: The embedder is asked over the network: its evaluators wait for a verdict, as judged ones do.
        judge: Name of the judge's model, part of judged evaluators' options digest; False or "" = there is none.
        expectations: Whether there is an expectations file.
        only: Emit just these; evaluators whose scores they read are computed and not emitted.

    Raises:
        SettingsError: A name, option or threshold does not fit, or an evaluator enabled by name lacks what it needs;
            one line for each, which starts with the path of the setting.
    """
    have: set[Need] = {"history", "running", "earlier_sessions"}
    have |= {"embedder"} if embedder is not None else set()
    have |= {"judge"} if judge else set()
    have |= {"expectations"} if expectations else set()
    if wrong := list(_wrong(registry, settings, only or ())):
        raise SettingsError("\n".join(wrong))
    on = {
        name: specs
        for name in sorted({spec.name for spec in registry})
        if (specs := _running_siblings(name, registry, settings, have, only))
    }
    named = set(on) if only is None else set(only)
    models = embedder, judge if isinstance(judge, str) else None
    uncalibrated = _uncalibrated(registry, embedder)
    configured = [
        _configure(spec, settings.get(name), specs, models, uncalibrated, emit=name in named)
        for name, specs in on.items()
        for spec in specs
    ]
    needed = named | {signal for each in configured if each.emit for signal in signals_of(each)}
    return _arranged((each for each in configured if each.spec.name in needed), hosted=hosted)


def signals_of(configured: Configured) -> tuple[str, ...]:
    """The evaluators whose scores this one reads; empty for most."""
    return tuple(configured.options.get("signals") or ())


def sees_history(configured: Configured) -> bool:
    return "history" in configured.spec.needs


def is_embedded(configured: Configured) -> bool:
    needs = configured.spec.needs
    return "embedder" in needs and "judge" not in needs


def is_plugin(configured: Configured) -> bool:
    """Whether it runs where it can end nothing of ours; of ours, what needs earlier texts runs there too."""
    no_sketch = sees_history(configured) and configured.spec.sketch is None
    return is_third_party(configured) or no_sketch


def is_third_party(configured: Configured) -> bool:
    return configured.spec.method == "custom"


def is_ranked(configured: Configured) -> bool:
    return "earlier_sessions" in configured.spec.needs


LOCAL_EMBEDDER = "wordllama"
"""How the names of the local embedder's models begin."""


def _uncalibrated(registry: Registry, embedder: str | None) -> frozenset[str]:
    if embedder is not None and not embedder.startswith(LOCAL_EMBEDDER):
        return frozenset()
    return frozenset(spec.name for spec in registry if not spec.calibrated_locally)


_KEYS: Mapping[str, str] = {"judge": "judge.model", "embedder": "embedder.kind"}
"""The setting that provides a need, where its name differs."""


def _arranged(configured: Iterable[Configured], *, hosted: bool) -> Plan:
    every = tuple(configured)

    def waits(each: Configured) -> bool:
        return "judge" in each.spec.needs or (hosted and is_embedded(each))

    judged = tuple(each for each in every if waits(each))
    ranked = tuple(each for each in every if is_ranked(each))
    local = [each for each in every if not waits(each) and each not in ranked]
    ours = [each for each in local if not is_plugin(each)]
    return Plan(
        trace=tuple(each for each in ours if each.spec.scope == "trace"),
        session=tuple(each for each in ours if each.spec.scope == "session"),
        judged=judged,
        plugins=tuple(each for each in local if is_plugin(each)),
        ranked=ranked,
    )


def _wrong(
    registry: Registry, settings: Mapping[str, Settings], only: Collection[str]
) -> Iterator[str]:
    known = {spec.name for spec in registry}
    for name in sorted({*settings, *only}):
        if name.partition("/")[0] in registry.broken:
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"evaluators.{name}: no evaluator of that name{hint}"
        elif name in settings:
            yield from _wrong_settings(name, registry.named(name), settings[name])


def _wrong_settings(name: str, siblings: tuple[Spec, ...], chosen: Settings) -> Iterator[str]:
    for option, value in chosen.options.items():
        owners = [spec for spec in siblings if option in spec.options] or siblings[:1]
        try:
            for spec in owners:
                spec.option(option, value)
        except SettingsError as error:
            yield str(error)
    if chosen.threshold is not None and not 0 <= chosen.threshold <= 1:
        yield f"evaluators.{name}.threshold: expected a number from 0 to 1"
    if chosen.model is not None and not any("judge" in spec.needs for spec in siblings):
        yield f"evaluators.{name}.model: `{name}` asks no model"
    if chosen.timeout is not None and all(spec.method != "custom" for spec in siblings):
        yield f"evaluators.{name}.timeout: only third parties' evaluators have one"


def _running_siblings(
    name: str,
    registry: Registry,
    settings: Mapping[str, Settings],
    have: Collection[Need],
    only: Collection[str] | None,
) -> tuple[Spec, ...]:
    """The evaluators of one name that run: the judged one, its stand-in, both or neither."""
    chosen = settings.get(name, Settings())
    siblings = registry.named(name)
    by_name = chosen.enabled is True or (only is not None and name in only)
    if not by_name and (chosen.enabled is False or not any(spec.on for spec in siblings)):
        return ()
    able = tuple(spec for spec in siblings if set(spec.needs) <= set(have))
    if by_name and not able:
        lacking = {need for spec in siblings for need in spec.needs} - set(have)
        missing = sorted(_KEYS.get(need, need) for need in lacking)
        raise SettingsError(f"evaluators.{name}: needs {', '.join(missing)}, which is not set")
    return able


def check_block(name: str, kind: Any, options: Mapping[str, JSON]) -> None:
    """Check what a judge's question is made of.

    Raises:
        SettingsError: an option does not fit.
    """
    if not is_a(kind, Block):
        return
    try:
        kind.check_options(options)
    except ValueError as error:
        raise SettingsError(f"evaluators.{name}: {error}") from error


def _configure(
    spec: Spec,
    chosen: Settings | None,
    siblings: tuple[Spec, ...],
    models: tuple[str | None, str | None],
    uncalibrated: Collection[str],
    *,
    emit: bool,
) -> Configured:
    chosen = chosen or Settings()
    user_options = {key: value for key, value in chosen.options.items() if key in spec.options}
    options = {**spec.options, **{key: spec.option(key, user_options[key]) for key in user_options}}
    if options.get("signals", ()) is None:
        options["signals"] = default_signals(uncalibrated)
    threshold = spec.threshold if chosen.threshold is None else chosen.threshold
    is_calibrated = spec.name not in uncalibrated or "embedder" not in spec.needs
    if threshold is not None and "threshold" in spec.options:
        options["threshold"] = threshold
    for kind in spec.resources.values():
        check_block(spec.name, kind, options)
    is_judged = "judge" in spec.needs
    embedder, judge = models
    model = chosen.model or judge if is_judged else None
    model = embedder if "embedder" in spec.needs else model
    return Configured(
        spec=spec,
        options=options,
        threshold=threshold,
        options_digest=options_digest(options, threshold, model),
        model=chosen.model if is_judged else None,
        timeout=PLUGIN_TIMEOUT if chosen.timeout is None else chosen.timeout,
        final=is_judged or not any("judge" in other.needs for other in siblings),
        emit=emit,
        is_calibrated=is_calibrated,
    )
