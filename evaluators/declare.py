"""How an evaluator is declared: its signature says what it scores, what it needs and what can be set.

first parameter (Trace or Session)   -> scope; its name says it where it has no annotation
keyword-only without default         -> a resource by type (evaluators/resources.py)
keyword-only with default            -> an option, settable in YAML, checked against its annotation
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

from evaluators.errors import SettingsError
from evaluators.expectations import Expectation
from evaluators.model import JSON, Content, Method, Scope, Score, Session, Trace
from evaluators.resources import (
    Block,
    Conversation,
    EarlierRuns,
    EarlierSessions,
    Embedder,
    Expected,
    History,
    Judge,
    Running,
    Sketch,
)

Function = Callable[..., Score | float | Awaitable[Score | float | None] | None]
"""A number or a truth value is a score without an explanation; None: there was nothing to judge."""
Need = Literal["embedder", "history", "expectations", "judge", "running", "earlier_sessions"]
F = TypeVar("F", bound=Function)

_SCOPES: Mapping[Any, Scope] = {Trace: "trace", Session: "session"}
_BY_NAME = {"trace": Trace, "session": Session}
_EXACT: Mapping[Any, Need] = {
    Embedder: "embedder",
    History: "history",
    Expectation: "expectations",
    Expected: "expectations",
    Judge: "judge",
    Conversation: "judge",
    EarlierSessions: "earlier_sessions",
    EarlierRuns: "earlier_sessions",
}
_MARK = "__spanwise_evaluator__"

DEFAULT_READS: frozenset[Content] = frozenset({"text", "tool_calls"})
"""What an evaluator is taken to read when its declaration does not say."""

_SESSION: frozenset[Content] = frozenset({"session"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One evaluator as declared."""

    name: str
    scope: Scope
    version: str
    method: Method
    resources: Mapping[str, Any]
    """Parameter name to resource type."""
    needs: tuple[Need, ...]
    """Where those resources come from; listed by `spanwise evaluators`."""
    options: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    """Defaults by name."""
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Types of the options."""
    threshold: float | None
    on: bool = True
    """Whether it runs without being enabled by name, once its needs are met."""
    verdict_in_metadata: bool = False
    doc: str
    function: Function
    source: str = ""
    """The document or convention that defines its score; shown in docs/evaluators.md."""
    reads: frozenset[Content] = DEFAULT_READS
    """Content without which its score says less: `spanwise doctor` names it where a recording lacks any of that."""
    assumed_counts: bool = False
    """Whether a score that it assumes (`Score.assume`) counts in session formulas as if it were scored."""
    calibrated_locally: bool = True
    """False: with the local embedder its scores have no calibrated scale. They are then held to no default objective,
    and session formulas leave them out unless their option `signals` names them."""
    sketch: type[Sketch] | None = None
    """What it keeps of a trace to compare it with later ones; None: it compares the texts of `History`, if it does."""

    @property
    def running(self) -> type[Running] | None:
        """The state class that a session evaluator keeps, if it keeps one."""
        return next((kind for kind in self.resources.values() if is_a(kind, Running)), None)

    def option(self, name: str, value: JSON) -> JSON:
        """`value` as the option's type.

        Raises:
            SettingsError: It does not fit; the message starts with the setting's path.
        """
        where = f"evaluators.{self.name}.{name}"
        if name not in self.options:
            known = ", ".join(sorted(self.options)) or "none"
            raise SettingsError(f"{where}: no such option (it has: {known})")
        try:
            return msgspec.convert(value, self.annotations[name])
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: {error}") from error


def evaluator(  # noqa: PLR0913 - one argument for each fact that a declaration may state
    *_positional: object,
    version: str = "",
    threshold: float | None = 0.5,
    name: str | None = None,
    method: Method | None = None,
    on: bool = True,
    verdict_in_metadata: bool = False,
    source: str = "",
    reads: Collection[Content] | None = None,
    assumed_counts: bool = False,
    calibrated_locally: bool = True,
    sketch: type[Sketch] | None = None,
) -> Callable[[F], F]:
    """Declare a function as an evaluator; the decorator returns the function itself.

    Args:
        version: Bump it when old and new scores must not be mixed.
        threshold: Success is score >= threshold; None = it has no pass or fail.
        name: Default: the function's name.
        method: Default: what the signature implies.
        on: False = runs only when named in the configuration.
        verdict_in_metadata: Its document lists threshold and success in the metadata.
        source: The document or convention that defines the score. Evaluators of this package must name one.
        reads: The content that it needs; None = texts and tool calls, and sessions for what compares traces.
        assumed_counts: A score that it assumes counts in session formulas.
        calibrated_locally: False = its scale is not calibrated with the local embedder.
        sketch: What it keeps of a trace, where it compares traces of a session by that.

    Raises:
        TypeError: The runner cannot serve the signature; the message names evaluator and parameter.
    """
    if _positional or not version:  # `@evaluator` without parentheses, too
        raise TypeError('write it with parentheses and a version: @spanwise.evaluator(version="1")')

    def declare(function: F) -> F:
        label = name or function.__name__
        if not NAME.fullmatch(label):
            raise TypeError(f"evaluator `{label}`: a name is lower_snake_case")
        resources, options, annotations, scope = _signature(label, function)
        needs = _needs(label, resources)
        _check_scope(label, scope, needs)
        spec = Spec(
            name=label,
            scope=scope,
            version=version,
            method=method or _method(scope, needs),
            resources=resources,
            needs=needs,
            options=options,
            annotations=annotations,
            threshold=threshold,
            on=on,
            verdict_in_metadata=verdict_in_metadata,
            doc=inspect.getdoc(function) or "",
            function=function,
            source=source,
            reads=_reads(scope, needs) if reads is None else frozenset(reads),
            assumed_counts=assumed_counts,
            calibrated_locally=calibrated_locally,
            sketch=sketch,
        )
        _check_sketch(spec)
        for option, default in options.items():
            _check_default(spec, option, default)
        setattr(function, _MARK, spec)
        return function

    return declare


pandaprobe = partial(evaluator, verdict_in_metadata=True, source="PandaProbe, evaluation metrics")
"""Declares an evaluator of a trace by PandaProbe's document, which lists threshold and success in the metadata."""


def declared(function: object) -> Spec | None:
    """The declaration of a function; None for anything without `@evaluator`."""
    return getattr(function, _MARK, None) if inspect.isfunction(function) else None


NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""Names of evaluators: lower_snake_case."""


def _signature(
    name: str, function: Function
) -> tuple[dict[str, Any], dict[str, JSON], dict[str, Any], Scope]:
    hints = get_type_hints(function, include_extras=True)
    parameters = [*inspect.signature(function).parameters.values()]
    if not parameters:
        raise TypeError(f"evaluator `{name}`: it takes no Trace and no Session")
    first, *rest = parameters
    scope = _SCOPES.get(hints.get(first.name, _BY_NAME.get(first.name)))
    if scope is None:
        raise TypeError(
            f"evaluator `{name}`: `{first.name}` must be a Trace or a Session: annotate it, or call it so"
        )
    resources: dict[str, Any] = {}
    options: dict[str, JSON] = {}
    for parameter in rest:
        has_default = parameter.default is not parameter.empty
        if parameter.kind is not parameter.KEYWORD_ONLY or not (
            has_default or parameter.name in hints
        ):
            raise TypeError(
                f"evaluator `{name}`: `{parameter.name}` must be keyword-only, and annotated or with a default"
            )
        if has_default and parameter.name not in hints:
            hints[parameter.name] = Any if parameter.default is None else type(parameter.default)
        if parameter.default is parameter.empty:
            resources[parameter.name] = hints[parameter.name]
        else:
            options[parameter.name] = parameter.default
    return resources, options, {key: hints[key] for key in options}, scope


def _needs(name: str, resources: Mapping[str, Any]) -> tuple[Need, ...]:
    found: dict[Need, None] = {}
    for parameter, kind in resources.items():
        found[_need(name, parameter, kind)] = None
    return tuple(found)


def _need(name: str, parameter: str, kind: Any) -> Need:
    for resource, need in _EXACT.items():
        if kind is resource:
            return need
    if is_a(kind, Block):
        return "judge"
    if is_a(kind, Running):
        return "running"
    raise TypeError(f"evaluator `{name}`: nothing provides `{parameter}: {kind}`")


def _check_scope(name: str, scope: Scope, needs: tuple[Need, ...]) -> None:
    if scope == "trace" and "running" in needs:
        raise TypeError(f"evaluator `{name}`: only a session has a running state")
    if "earlier_sessions" in needs:
        if scope == "trace" or len(needs) > 1:
            raise TypeError(f"evaluator `{name}`: a session alone is ranked among earlier sessions")
    elif scope == "session" and "judge" not in needs and set(needs) - {"running"}:
        raise TypeError(f"evaluator `{name}`: a session has its turns and a running state only")


def _check_sketch(spec: Spec) -> None:
    if spec.sketch is not None and not ("history" in spec.needs and "text" in spec.reads):
        raise TypeError(
            f"evaluator `{spec.name}`: only one that takes History and reads texts has a sketch"
        )


def _reads(scope: Scope, needs: tuple[Need, ...]) -> frozenset[Content]:
    compares = scope == "session" or "history" in needs
    return DEFAULT_READS | _SESSION if compares else DEFAULT_READS


def is_a(kind: Any, base: type) -> bool:
    return inspect.isclass(kind) and issubclass(kind, base)


def _method(scope: Scope, needs: tuple[Need, ...]) -> Method:
    if "judge" in needs:
        return "llm_judge"
    if "embedder" in needs:
        return "embedding"
    return "deterministic" if scope == "trace" else "formula"


def _check_default(spec: Spec, option: str, default: JSON) -> None:
    try:
        spec.option(option, default)
    except (SettingsError, TypeError) as error:
        raise TypeError(f"evaluator `{spec.name}`: default of `{option}`: {error}") from error
